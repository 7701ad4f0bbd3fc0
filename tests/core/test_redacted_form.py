"""Redacted forms: equal before and after texts are erased, and different for all other changes."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from foveate.core import ids, wire
from foveate.core.edits import Edit, Hide, Record, Replace, Restore, Span, Summarize, Target
from foveate.core.ids import ERASED, erased_edit, erased_stamp, is_erased, redacted_record, redacted_stamp
from foveate.core.messages import Text
from foveate.core.stamps import Stamp

ONE, TWO = "1" * 40, "2" * 40
REPLACED = Replace(
    Target(ONE), (Text("a secret in short"),), "shrink", "it says a secret", 9, 3, refused=("m: secret",)
)
SUMMED_UP = Summarize(Span(ONE, TWO), "a secret, summed up", "compact", "too long", 90, 30, by="digest")


def record(*edits: Edit) -> Record:
    return Record(1, edits, 3, 5, TWO, 2, author="plan")


def test_erasing_texts_keeps_the_redacted_form():
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
def test_different_records_have_different_redacted_forms(other: Record):
    assert redacted_record(other) != redacted_record(record(REPLACED))


def test_erasing_metadata_keeps_the_seal_of_a_stamp():
    stamp = Stamp(1, 2, 3, "user", metadata='{"name": "Ada"}', step="run/1")
    erased = erased_stamp(stamp)
    assert (b"Ada" in wire.encode_stamp(erased), erased_stamp(erased)) == (False, erased)
    assert redacted_stamp(erased) == redacted_stamp(stamp)
    assert redacted_stamp(replace(stamp, metadata='{"name": "Bob"}')) != redacted_stamp(stamp)
    assert redacted_stamp(replace(stamp, metadata="")) == wire.encode_stamp(replace(stamp, metadata=""))


def test_record_ids_of_an_earlier_version_are_verified():
    body = wire.encode_record(record(REPLACED))
    assert ids.legacy_record_id("", body) != ids.record_id("", redacted_record(record(REPLACED)))
