"""Saved bodies: the rendered messages of a saved view, in pieces."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from foveate.core.saved_bodies import SavedBodies, SavedGroup, join_bodies

BODIES = st.lists(st.lists(st.binary(min_size=1, max_size=9), max_size=3), max_size=600)


@given(BODIES)
def test_groups_are_found_in_their_pieces(groups: list[list[bytes]]) -> None:
    """A group without bodies is written again, so it is alone in a piece without a text."""
    saved = [SavedGroup(size, tuple(map(len, bodies))) for size, bodies in enumerate(groups, 1)]
    joined = join_bodies(zip(saved, groups, strict=True))
    places = list(joined.places())
    assert [place.group for place in places] == saved
    assert [joined.texts[place.piece][place.start : place.stop] for place in places] == [
        b",".join(bodies) for bodies in groups
    ]
    assert sum(piece.entries for piece in joined.pieces) == sum(group.size for group in saved)
    assert [piece.wires > 0 for piece in joined.pieces] == [bool(text) for text in joined.texts]


def test_no_groups_are_no_pieces() -> None:
    assert join_bodies([]).pieces == ()
    assert list(SavedBodies().places()) == []
