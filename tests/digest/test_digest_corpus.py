"""Digests of recorded sessions: the names that they keep, in all and by source."""

from __future__ import annotations

import pytest

from foveate.replay.digests import measure_digests, sum_figures
from foveate.replay.recordings import read_recording


@pytest.mark.slow
def test_digests_keep_what_later_calls_use_in_an_eighth_of_the_size(transcripts):
    """Of the identifiers that later calls used and one result alone had, 85 % and more, in 13 % of the characters."""
    by_source: dict[str, list] = {}
    for path in sorted((transcripts / "neutral").glob("*/*.jsonl")):
        messages = [one.message for one in read_recording(path).messages]
        by_source.setdefault(path.parent.name, []).extend(measure_digests(messages))
    whole = sum_figures([one for figures in by_source.values() for one in figures], "all")
    assert whole.used > 1_000
    assert whole.kept / whole.used >= 0.85
    assert whole.digest_characters / whole.characters <= 0.13
    assert whole.largest <= 0.25
    # Far ahead of what is as cheap: a prefix, and a head with a tail.
    assert whole.kept > 3 * max(whole.kept_first, whole.kept_ends)
    for source in by_source:
        rest = sum_figures([one for name, figures in by_source.items() if name != source for one in figures], "rest")
        assert rest.kept / rest.used >= 0.83, source
        assert rest.digest_characters / rest.characters <= 0.145, source
