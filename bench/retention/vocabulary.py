"""Words for the slots of shapes. No word is drawn twice in a conversation, so a word identifies its fact."""

from __future__ import annotations

import re
from collections.abc import Callable
from random import Random

__all__ = ["Words", "listed"]


def listed(words: str) -> list[str]:
    """Return the words of a text."""
    return words.split()


PEOPLE = listed(
    "Amara Ana Anouk Bjarne Carmen Chidi Dagny Darius Elif Emeka Farid Fenna Gideon Greta Hamza Hana Idris Imke Jonas "
    "Jamila Kaito Katya Lars Leila Mateo Mirela Nadia Niels Odile Omar Petra Priya Quentin Rania Rasmus Saskia Sven "
    "Tamara Tobias Ursula Vera Viggo Wanda Xenia Yusuf Yara Zane Zora"
)
FAMILIES = listed(
    "Adeyemi Bauer Castell Dahlberg Eklund Ferraro Grunwald Haddad Ibarra Jansen Kowalski Lindqvist Moreau Novak "
    "Okafor Pereira Quist Romero Sandoval Tanaka Ulrich Varga Wexler Yilmaz Zeman"
)
FIRST = listed(
    "amber birch cedar cobalt copper coral delta ember falcon fjord garnet harbor hazel indigo juniper kestrel lagoon "
    "linden maple marble nickel ochre onyx opal orchid osprey pebble quartz raven russet saffron sierra slate spruce "
    "tundra umber velvet willow zephyr"
)
SECOND = listed(
    "archive beacon billing broker cache catalog courier engine export feed gateway importer index intake ledger "
    "loader mailer matcher notifier parser planner portal pricing proxy queue ranker relay router sampler scheduler "
    "shipper sync tracker uploader vault watcher"
)
LIBRARIES = listed(
    "attrs orjson polars duckdb httpx aiohttp celery dramatiq rq huey pydantic marshmallow alembic flyway liquibase "
    "vitest jest mocha playwright cypress selenium redux zustand mobx svelte solid vue rollup esbuild webpack parcel "
    "terraform pulumi ansible chef nginx caddy traefik haproxy kafka rabbitmq nats pulsar grafana kibana"
)
CITIES = listed(
    "Lisbon Porto Vienna Graz Oslo Bergen Riga Tallinn Turin Bari Lyon Nantes Leeds Bristol Osaka Sapporo Quito Lima "
    "Dakar Accra Nairobi Perth Hobart Austin Tucson Boise Halifax Regina"
)
FOODS = listed("peanuts shellfish gluten lactose soy sesame mustard celery lupin walnuts")
MONTHS = listed("January February March April May June July August September October November December")
FIELDS = listed(
    "retry_limit max_rows batch_size pool_size queue_depth page_size cache_ttl idle_timeout max_depth shard_count "
    "burst_limit worker_count chunk_bytes grace_period backoff_ms poll_interval lock_timeout fetch_size heap_mb "
    "fan_out"
)
TOPICS = listed(
    "invoices refunds payouts coupons shipments returns audits exports imports signups logins uploads alerts quotas "
    "reports webhooks subscriptions permissions translations attachments"
)


class Words:
    """Fills slots with words that no other slot of the same conversation has."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._drawn: set[str] = set()

    def fill(self, *texts: tuple[str, ...]) -> tuple[tuple[str, ...], ...]:
        """Return the texts of one fact with their slots filled; the same slot gets the same word."""
        words: dict[str, str] = {}
        slots = sorted({slot for group in texts for text in group for slot in re.findall(r"\{(\w+)\}", text)})
        for slot in slots:
            words[slot] = self._draw(slot.rstrip("0123456789"))
        return tuple(tuple(text.format_map(words) for text in group) for group in texts)

    def _draw(self, kind: str) -> str:
        make = _MAKERS[kind]
        for _ in range(1_000):
            if (word := make(self._random)) not in self._drawn:
                self._drawn.add(word)
                return word
        raise ValueError(f"The vocabulary has no unused {kind!r} left. Use fewer facts in a conversation.")


def _choice(words: list[str]) -> Callable[[Random], str]:
    return lambda random: random.choice(words)


def _joined(pattern: str) -> Callable[[Random], str]:
    return lambda random: pattern.format(a=random.choice(FIRST), b=random.choice(SECOND), n=random.randint(11, 97))


_MAKERS: dict[str, Callable[[Random], str]] = {
    "person": _choice(PEOPLE),
    "family": _choice(FAMILIES),
    "city": _choice(CITIES),
    "food": _choice(FOODS),
    "month": _choice(MONTHS),
    "library": _choice(LIBRARIES),
    "field": _choice(FIELDS),
    "topic": _choice(TOPICS),
    "word": _choice(FIRST),
    "service": _joined("{a}-{b}"),
    "table": _joined("{a}_{b}"),
    "branch": _joined("release/{a}-{n}"),
    "path": _joined("src/{a}/{b}"),
    "file": _joined("{a}/{b}.py"),
    "config": _joined("config/{b}.{a}.yaml"),
    "folder": _joined("data/{a}_{n}"),
    "host": _joined("{a}-{n}.internal"),
    "flag": _joined("--{a}-{b}"),
    "company": lambda random: f"{random.choice(FIRST).title()} {random.choice(('AG', 'Ltd', 'Group', 'Labs'))}",
    "port": lambda random: str(random.randint(2_001, 9_998)),
    "count": lambda random: str(random.randint(101, 989)),
    "small": lambda random: str(random.randint(13, 97)),
    "money": lambda random: f"{random.randint(11, 98)},{random.randint(1, 9)}00",
    "percent": lambda random: f"{random.randint(2, 97)}.{random.randint(1, 9)}",
    "version": lambda random: f"{random.randint(2, 19)}.{random.randint(10, 40)}",
    "ticket": lambda random: f"{random.choice(('OPS', 'WEB', 'FIN', 'CRM'))}-{random.randint(1_000, 9_999)}",
    "hash": lambda random: f"{random.getrandbits(28):07x}",
    "date": lambda random: f"{random.randint(2, 28)} {random.choice(MONTHS)}",
    "clock": lambda random: f"{random.randint(5, 22):02d}:{random.choice((5, 10, 20, 25, 35, 40, 50, 55)):02d}",
}
