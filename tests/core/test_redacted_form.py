"""Outlines: what is hashed into the chains is the same before and after texts are erased, and nothing else is."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from foveate.core import ids, wire
from foveate.core.edits import Edit, Hide, Record, Replace, Restore, Span, Summarize, Target
from foveate.core.messages import Text
from foveate.core.redacted_form import ERASED, erased_edit, erased_stamp, is_erased, redacted_record, redacted_stamp
from foveate.core.stamps import Stamp

ONE, TWO = "1" * 40, "2" * 40
REPLACED = Replace(
    Target(ONE), (Text("a secret in short"),), "shrink", "it says a secret", 9, 3, refused=("m: secret",)
)
SUMMED_UP = Summarize(Span(ONE, TWO), "a secret, summed up", "compact", "too long", 90, 30, by="digest")


def record(*edits: Edit) -> Record:
    return Record(1, edits, 3, 5, TWO, 2, author="plan")


def test_erased_texts_are_gone_and_the_outline_is_as_before():
    before = record(REPLACED, Hide(Target(TWO)), SUMMED_UP)
    after = replace(before, edits=tuple(map(erased_edit, before.edits)))
    assert redacted_record(after) == redacted_record(before)
    assert (b"secret" in wire.encode_record(before), b"secret" in wire.encode_record(after)) == (True, False)
    assert [is_erased(edit) for edit in after.edits] == [True, False, True]
    assert after.edits[2] == replace(SUMMED_UP, text=ERASED, reason="", erased=after.edits[2].erased)
    assert tuple(map(erased_edit, after.edits)) == after.edits
    assert wire.decode_record(wire.encode_record(after)) == after


@pytest.mark.parametrize(
    "other",
    [
        record(replace(REPLACED, content=(Text("another secret"),))),
        record(replace(REPLACED, reason="another")),
        record(replace(REPLACED, target=Target(TWO))),
        record(replace(erased_edit(REPLACED), target=Target(TWO))),
        record(replace(erased_edit(REPLACED), erased="3" * 40)),
        replace(record(REPLACED), turn=4),
        record(Restore((Target(ONE),))),
    ],
)
def test_any_other_record_has_another_outline(other: Record):
    assert redacted_record(other) != redacted_record(record(REPLACED))


def test_an_applications_own_facts_leave_a_stamp_without_breaking_its_seal():
    stamp = Stamp(1, 2, 3, "user", metadata='{"name": "Ada"}', step="run/1")
    erased = erased_stamp(stamp)
    assert (b"Ada" in wire.encode_stamp(erased), erased_stamp(erased)) == (False, erased)
    assert redacted_stamp(erased) == redacted_stamp(stamp)
    assert redacted_stamp(replace(stamp, metadata='{"name": "Bob"}')) != redacted_stamp(stamp)
    assert redacted_stamp(replace(stamp, metadata="")) == wire.encode_stamp(replace(stamp, metadata=""))


def test_a_record_of_an_earlier_version_has_another_id_which_is_still_known():
    body = wire.encode_record(record(REPLACED))
    assert ids.legacy_record_id("", body) != ids.record_id("", redacted_record(record(REPLACED)))
