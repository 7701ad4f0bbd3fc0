"""Outlines: a projection that releases originals shows the same view as one that holds them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foveate.core import originals
from foveate.core.edits import Hide, Replace, Restore, Target
from foveate.core.messages import Media, Message, Text, ToolCall, assistant, tool_result, user
from foveate.core.originals import Original, outline_of
from foveate.core.projection import Projection
from foveate.core.sizes import estimate
from foveate.core.stamps import PartRetention, Retention, Stamp
from foveate.core.view import Entry
from foveate.testing.strategies import edits, histories

from .story import ANTHROPIC, BINDING, OPENAI, Story

LONG = "word " * 1_000
IMAGE = Media("image/png", "base64", "A" * 4_000)
BY_TOOL = Stamp(1, 1, 1, "tool")


def shown(entry: Entry) -> tuple[object, ...]:
    skipped = ("appended", "_memo")
    return tuple(getattr(entry, field) for field in entry.__struct_fields__ if field not in skipped)


@pytest.fixture(scope="module", autouse=True)
def _outlines_of_short_texts():
    patch = pytest.MonkeyPatch()
    patch.setattr(originals, "_SAVED_MIN", 1)
    yield
    patch.undo()


class Releasing(Story):
    """A story whose projection releases originals after each change."""

    def __init__(self, *messages: Message, profile=OPENAI) -> None:
        super().__init__(profile=profile)
        self.reads = 0
        self.projection = Projection(profile, estimate, self._read)
        self.say(*messages)

    def _read(self, position: int, id: str, /) -> Message:
        self.reads += 1
        assert self.rows[position - 1].id == id
        return self.rows[position - 1].message

    def edit(self, *changes, turn=None):
        record = super().edit(*changes, turn=turn)
        self.projection.release_originals()
        return record


@given(history=histories(max_size=14), profile=st.sampled_from([OPENAI, ANTHROPIC, BINDING]), data=st.data())
def test_releasing_originals_changes_no_view(history, profile, data):
    plain, releasing = Story(profile=profile), Releasing(profile=profile)
    for message in history:
        plain.say(message)
        releasing.say(message)
        if data.draw(st.integers(0, 2)) == 0:
            changes = data.draw(edits([row.id for row in plain.rows], max_size=3))
            plain.edit(*changes)
            releasing.edit(*changes)
        if data.draw(st.booleans()):
            releasing.projection.entries()
    before, after = plain.projection.entries(), releasing.projection.entries()
    assert list(map(shown, after)) == list(map(shown, before))
    assert [entry.source for entry in after] == [entry.source for entry in before]
    assert [entry.result for entry in after] == [entry.result for entry in before]
    assert releasing.projection.snapshot() == plain.projection.snapshot()


def test_a_restored_message_is_read_once():
    story = Releasing(user("Go."), assistant("", ToolCall("a", "look")), tool_result("a", LONG))
    story.edit(Replace(Target(story.id(3), (0,)), (Text("short"),)))
    entry = story.projection.entries()[2]
    assert isinstance(entry.appended, Original)
    assert story.reads == 0
    story.edit(Restore((Target(story.id(3)),)))
    assert story.projection.entries()[2].message.text == LONG
    assert story.projection.entries()[2].source == story.rows[2].message
    assert story.reads == 1


def test_an_outline_keeps_what_a_view_still_shows():
    message = tool_result("a", LONG, IMAGE, state="error")
    outline = outline_of(message, BY_TOOL, [(0, 1)])
    assert outline is not None
    assert outline.text == LONG
    assert [media.data for media in outline.media()] == [""]
    whole = outline_of(message, BY_TOOL, [(0,)])
    assert whole is not None
    assert whole.result is not None
    assert (whole.text, whole.result.call_id, whole.result.state) == ("…", "a", "error")


def test_an_outline_keeps_the_headline_of_an_action():
    outline = outline_of(user(f"Result of look, which failed:\n{LONG}"), BY_TOOL, [()])
    assert outline is not None
    assert outline.text == "Result of look, which failed:\n…"


def test_an_outline_keeps_the_words_of_the_user():
    message = Message("user", (Text(LONG), Text(LONG + "by a plugin")))
    stamp = Stamp(1, 1, 1, "user", retention=Retention(1, (PartRetention(), PartRetention(True, 0, "screen"))))
    outline = outline_of(message, stamp, [()])
    assert outline is not None
    assert [part.text for part in outline.parts if isinstance(part, Text)] == [LONG, "…"]
    assert outline_of(user(LONG), Stamp(1, 1, 1, "user"), [()]) is None


def test_arguments_of_a_shrunk_call_leave_the_memory():
    story = Releasing(user("Go."), assistant("I write.", ToolCall("a", "write", f'{{"text":"{LONG}"}}')))
    story.edit(Replace(Target(story.id(2), (1,)), (Text('{"text":"short"}'),)))
    story.edit(Hide(Target(story.id(2), (0,))))
    entry = story.projection.entries()[1]
    assert entry.outline is not None
    assert entry.outline.calls == (ToolCall("a", "write"),)
    assert entry.message.calls == (ToolCall("a", "write", '{"text":"short"}'),)
    assert entry.source == story.rows[1].message
