"""Quality of digests: the share of later used identifiers that a digest keeps.

Each long result is digested alone; no replay and no policy is involved. For comparison, the same result is shortened to
the same size in the two cheapest ways: its first characters, and its head and tail.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct

from ..core.messages import Message
from ..digest import digest
from ..digest.listings import unfold_paths
from .measure import share
from .references import References, identifiers, things_in_calls

__all__ = ["SHORTEST", "DigestFigures", "figures_table", "measure_digests", "sum_figures"]

SHORTEST = 800
"""Characters above which a result counts. Shrinking a shorter one saves too little."""


class DigestFigures(Struct, frozen=True):
    """Figures of the digests of some results."""

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
    """How many of them the digest of that result keeps."""
    kept_first: int = 0
    """How many its first characters keep, at the digest's length."""
    kept_ends: int = 0
    """How many its head and tail keep, each half of the digest's length."""

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


def measure_digests(messages: Iterable[Message]) -> tuple[DigestFigures, ...]:
    """Return the figures of one transcript, one for each kind of content."""
    texts: dict[int, str] = {}
    used: dict[int, set[str]] = {}
    transcript = list(messages)
    references = References(things_in_calls(transcript))
    for position, message in enumerate(transcript, 1):
        for identifier, positions in references.read(message).recall.items():
            if len(positions) == 1 and positions[0] in texts:
                used.setdefault(positions[0], set()).add(identifier)
        if message.role == "tool" and len(message.text) > SHORTEST:
            texts[position] = message.text
    return _by_name(_of_result(text, position, used.get(position, set())) for position, text in texts.items())


def sum_figures(figures: Iterable[DigestFigures], name: str) -> DigestFigures:
    """Add up figures under a new name."""
    items = list(figures)
    return DigestFigures(
        name,
        results=sum([each.results for each in items]),
        characters=sum([each.characters for each in items]),
        digest_characters=sum([each.digest_characters for each in items]),
        largest=max([each.largest for each in items], default=0.0),
        used=sum([each.used for each in items]),
        kept=sum([each.kept for each in items]),
        kept_first=sum([each.kept_first for each in items]),
        kept_ends=sum([each.kept_ends for each in items]),
    )


def _of_result(text: str, position: int, used: set[str]) -> DigestFigures:
    short = digest(text, handle=f"m{position}")
    size = len(short.text)
    return DigestFigures(
        short.description.kind,
        1,
        len(text),
        size,
        size / len(text),
        len(used),
        len(used & _readable(short.text)),
        len(used & identifiers(text[:size])),
        len(used & identifiers(f"{text[: size // 2]}\n{text[len(text) - size // 2 :]}")),
    )


def _readable(text: str) -> frozenset[str]:
    """Return the identifiers in a digest, and the paths that its entries have together with the folders above them."""
    return identifiers(text) | identifiers("\n".join(unfold_paths(text)))


def _by_name(figures: Iterable[DigestFigures]) -> tuple[DigestFigures, ...]:
    groups: dict[str, list[DigestFigures]] = {}
    for each in figures:
        groups.setdefault(each.name, []).append(each)
    return tuple(sum_figures(group, name) for name, group in sorted(groups.items()))


def figures_table(figures: Sequence[DigestFigures]) -> list[list[str]]:
    """Return rows for a table: name, results, characters, size, largest, used, and the shares kept."""
    return [
        [
            each.name,
            f"{each.results:,}",
            f"{each.characters:,}",
            _percent(each.size),
            _percent(each.largest),
            f"{each.used:,}",
            _percent(each.kept_share),
            _percent(each.first_share),
            _percent(each.ends_share),
        ]
        for each in figures
    ]


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{value:.1%}"
