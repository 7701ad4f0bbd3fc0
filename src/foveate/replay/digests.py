"""How good digests are: of what later calls used and only one tool result had, how much its digest still holds.

Nothing is replayed and no policy is asked. Each long result is digested alone, and beside it stand the two cheapest
ways to shorten a text to the same size: its first characters, and its head and its tail.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct

from ..core.messages import Message
from ..digest import digest
from .measure import share
from .references import References, identifiers

__all__ = ["SHORTEST", "DigestFigures", "digest_figures", "sum_of_figures", "table_of"]

SHORTEST = 800
"""Characters above which a result counts: shorter ones are not worth shrinking."""


class DigestFigures(Struct, frozen=True):
    """What the digests of some results kept."""

    name: str
    """The transcript, or the kind of content."""
    results: int = 0
    characters: int = 0
    """Of the results."""
    digest_characters: int = 0
    largest: float = 0.0
    """The largest digest, as a share of its result."""
    used: int = 0
    """Identifiers that later calls used and that only one of these results had."""
    kept: int = 0
    """How many of them the digest of that result holds."""
    kept_first: int = 0
    """How many its first characters hold, in as many characters."""
    kept_ends: int = 0
    """How many its head and its tail hold, half of as many characters each."""

    @property
    def size(self) -> float | None:
        """The digests as a share of the results."""
        return share(self.digest_characters, self.characters)

    @property
    def kept_share(self) -> float | None:
        return share(self.kept, self.used)

    @property
    def first_share(self) -> float | None:
        return share(self.kept_first, self.used)

    @property
    def ends_share(self) -> float | None:
        return share(self.kept_ends, self.used)


def digest_figures(messages: Iterable[Message]) -> tuple[DigestFigures, ...]:
    """The figures of one transcript, one for each kind of content."""
    texts: dict[int, str] = {}
    used: dict[int, set[str]] = {}
    references = References()
    for position, message in enumerate(messages, 1):
        for identifier, positions in references.read(message).recall.items():
            if len(positions) == 1 and positions[0] in texts:
                used.setdefault(positions[0], set()).add(identifier)
        if message.role == "tool" and len(message.text) > SHORTEST:
            texts[position] = message.text
    return _by_name(_of_result(text, position, used.get(position, set())) for position, text in texts.items())


def sum_of_figures(figures: Iterable[DigestFigures], name: str) -> DigestFigures:
    """Figures added up, under a name of their own."""
    all_of = list(figures)
    return DigestFigures(
        name,
        results=sum([one.results for one in all_of]),
        characters=sum([one.characters for one in all_of]),
        digest_characters=sum([one.digest_characters for one in all_of]),
        largest=max([one.largest for one in all_of], default=0.0),
        used=sum([one.used for one in all_of]),
        kept=sum([one.kept for one in all_of]),
        kept_first=sum([one.kept_first for one in all_of]),
        kept_ends=sum([one.kept_ends for one in all_of]),
    )


def _of_result(text: str, position: int, used: set[str]) -> DigestFigures:
    made = digest(text, handle=f"m{position}")
    size = len(made.text)
    return DigestFigures(
        made.description.kind,
        1,
        len(text),
        size,
        size / len(text),
        len(used),
        len(used & identifiers(made.text)),
        len(used & identifiers(text[:size])),
        len(used & identifiers(f"{text[: size // 2]}\n{text[len(text) - size // 2 :]}")),
    )


def _by_name(figures: Iterable[DigestFigures]) -> tuple[DigestFigures, ...]:
    groups: dict[str, list[DigestFigures]] = {}
    for one in figures:
        groups.setdefault(one.name, []).append(one)
    return tuple(sum_of_figures(group, name) for name, group in sorted(groups.items()))


def table_of(figures: Sequence[DigestFigures]) -> list[list[str]]:
    """Rows for a table: name, results, characters, size, largest, used, and the shares that were kept."""
    return [
        [
            one.name,
            f"{one.results:,}",
            f"{one.characters:,}",
            _percent(one.size),
            _percent(one.largest),
            f"{one.used:,}",
            _percent(one.kept_share),
            _percent(one.first_share),
            _percent(one.ends_share),
        ]
        for one in figures
    ]


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{value:.1%}"
