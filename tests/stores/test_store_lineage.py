"""The rows of a branch, compared with branches that copy the shared rows."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foveate.stores import lineage
from foveate.stores.lineage import Range, Shared, descend


def test_branch_reads_its_ancestors_first_and_itself_last() -> None:
    family = (Shared(1, 5, 0), Shared(3, 8, 2))
    assert list(lineage.position_ranges(family, 4, 1, 10)) == [Range(1, 1, 5), Range(3, 6, 8), Range(4, 9, 10)]
    assert list(lineage.position_ranges(family, 4, 4, 6)) == [Range(1, 4, 5), Range(3, 6, 6)]
    assert list(lineage.position_ranges(family, 4, 9, 9)) == [Range(4, 9, 9)]
    assert list(lineage.record_ranges(family, 4, 1, 3)) == [Range(3, 1, 2), Range(4, 3, 3)]


def test_lineage_forgets_ancestors_without_shared_messages() -> None:
    """Regenerating one answer a thousand times makes a thousand branches; each must be as quick as the first."""
    family, branch = (), 1
    for again in range(2, 1000):
        family = descend(family, branch, 7, 3)
        branch = again
    assert family == (Shared(1, 7, 3), Shared(998, 7, 3))


def test_root_is_a_positive_63_bit_number_per_tenant() -> None:
    roots = {lineage.root_of(tenant, name) for tenant in ("", "a", "ab") for name in ("b", "bc", "abc")}
    assert len(roots) == 9
    assert all(0 < root < 2**63 for root in roots)
    # Part of the file format: a conversation is found by it.
    assert lineage.root_of("acme", "fix-login") == 1063795562250509941


@given(st.sets(st.integers(1, 40)))
def test_runs_hold_what_was_asked_for_in_as_few_pieces_as_there_are(positions: set[int]) -> None:
    found = list(lineage.spans(positions))
    assert [position for first, last in found for position in range(first, last + 1)] == sorted(positions)
    assert all(later[0] > earlier[1] + 1 for earlier, later in pairwise(found))


@given(
    st.lists(st.tuples(st.integers(0, 4), st.integers(0, 6), st.integers(0, 6), st.integers(0, 3), st.integers(0, 3)))
)
def test_any_tree_of_forks_reads_like_copies(forks: list[tuple[int, int, int, int, int]]) -> None:
    """Each fork: its parent, the number of shared messages and edits, and the number of its own."""
    messages, edits = {1: [(1, n) for n in range(1, 5)]}, {1: [(1, 1), (1, 2)]}
    families: dict[int, lineage.Lineage] = {1: ()}
    for new, (of, position, number, said, edited) in enumerate(forks, 2):
        old = of % (new - 1) + 1
        position, number = min(position, len(messages[old])), min(number, len(edits[old]))
        families[new] = descend(families[old], old, position, number)
        messages[new] = messages[old][:position] + [(new, position + n) for n in range(1, said + 1)]
        edits[new] = edits[old][:number] + [(new, number + n) for n in range(1, edited + 1)]
    for branch, family in families.items():
        assert lineage.decode(lineage.encode(family)) == family
        for copies, ranges in ((messages, lineage.position_ranges), (edits, lineage.record_ranges)):
            read = [
                (part.branch, n)
                for part in ranges(family, branch, 1, len(copies[branch]))
                for n in range(part.first, part.last + 1)
            ]
            assert read == copies[branch]


def test_lineage_that_cannot_be_read_is_refused() -> None:
    with pytest.raises(lineage.msgspec.DecodeError):
        lineage.decode("[[1, 2]]")
