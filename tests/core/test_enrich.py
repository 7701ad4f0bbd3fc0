"""Enriched messages: their parts, and how long each part is shown."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foveate import Media, Message, Text, ToolResult
from foveate.core.enrich import (
    AdditionalContent,
    EnrichedMessage,
    display_parts,
    enrich,
    own_message,
    persistent_parts,
    retained_parts,
)
from foveate.core.stamps import Retention, Stamp
from foveate.errors import BadMessage, BadSetting
from foveate.testing import answer, say, system, user
from foveate.types import PartRetention

SAID = user("What is on the screen?")
SHOT = Media("image/png", "base64", "iVBORw0KGgo=")
HEADER = Text("\n### PLUGIN screen CONTEXT ###\n")
SPACE = Text("\n")


def added(*contents: AdditionalContent) -> EnrichedMessage:
    return enrich(SAID, [("screen", contents)])


def shown(result: EnrichedMessage) -> tuple[object, ...]:
    return display_parts(result.message, result.kept)


def saved(result: EnrichedMessage) -> tuple[tuple[object, ...], tuple[int | None, ...]]:
    return persistent_parts(result.message, result.kept)


def one(text: str, save: bool | int = False, display: bool = True) -> AdditionalContent:
    return AdditionalContent(text, display, save)


# ------------------------------------------------------------------------------------------------------- the scenarios


@pytest.mark.parametrize("plugins", [[], [("screen", [])]])
def test_3_4_01_without_plugins_the_message_is_unchanged(plugins: list):
    result = enrich(SAID, plugins)
    assert result == EnrichedMessage(SAID, (PartRetention(),))
    assert shown(result) == SAID.parts
    assert saved(result) == (SAID.parts, (None,))


def test_3_4_02_the_documented_example():
    result = added(one("txt1", 3), one("txt2", True, display=False))
    parts = (*SAID.parts, HEADER, Text("txt1"), SPACE, Text("txt2"), SPACE)
    assert saved(result) == (parts, (None, None, 3, 3, None, None))
    assert shown(result) == parts[:4]
    assert result.message == Message("user", parts)


def test_3_4_03_shown_and_saved_content_is_the_same_now_and_later():
    result = added(one("txt", 3))
    assert saved(result) == (shown(result), (None, 3, 3, 3))
    assert shown(result) == (*SAID.parts, HEADER, Text("txt"), SPACE)


def test_3_4_04_a_header_stays_as_long_as_its_longest_content():
    result = added(one("a", 2), one("b", 5))
    assert saved(result)[1] == (None, 5, 2, 2, 5, 5)
    assert added(one("a", 2), one("b", True)).kept[1] == PartRetention(True, None, "screen")
    assert added(one("a", 2, display=False), one("b")).kept[1] == PartRetention(True, 2, "screen")


def test_3_4_05_content_can_be_only_shown_or_only_saved():
    only_shown, only_saved = added(one("now")), added(one("later", True, display=False))
    assert saved(only_shown) == (SAID.parts, (None,))
    assert shown(only_shown) == (*SAID.parts, HEADER, Text("now"), SPACE)
    assert shown(only_saved) == SAID.parts
    assert saved(only_saved) == ((*SAID.parts, HEADER, Text("later"), SPACE), (None,) * 4)


@pytest.mark.parametrize("save", [False, 0, -1, -(10**30)])
def test_3_4_06_content_saved_for_no_call_leaves_no_header(save: int):
    assert saved(added(one("a", save))) == (SAID.parts, (None,))
    assert added(one("a", save, display=False)) == EnrichedMessage(SAID, (PartRetention(),))
    assert saved(added(one("a", save), one("b", 2)))[1] == (None, 2, 2, 2)


@pytest.mark.parametrize("save", [2.0, float("nan"), "2", None])
def test_an_invalid_number_of_calls_is_refused(save: object):
    with pytest.raises(BadSetting, match="save_to_history= must be True, False or a whole number"):
        AdditionalContent("a", True, save)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("field", "value"),
    [("display_on_current_message", 1), ("content", 7), ("content", ("a",)), ("content", {"type": "text"})],
)
def test_a_field_of_the_wrong_type_is_refused(field: str, value: object):
    with pytest.raises(BadSetting, match=f"{field}= must be"):
        AdditionalContent(**{"content": "a", field: value})  # type: ignore[arg-type]


@pytest.mark.parametrize("blank", ["", " \n\t"])
def test_3_4_12_blank_blocks_are_dropped_and_get_no_retention(blank: str):
    result = added(one("a", 2), AdditionalContent((Text("b"), Text(blank), Text("c")), True, 5), one(blank, True))
    assert list(zip(result.message.parts, result.kept, strict=True)) == [
        (SAID.parts[0], PartRetention()),
        (HEADER, PartRetention(True, 5, "screen")),
        (Text("a"), PartRetention(True, 2, "screen")),
        (SPACE, PartRetention(True, 2, "screen")),
        (Text("b"), PartRetention(True, 5, "screen")),
        (Text("c"), PartRetention(True, 5, "screen")),
        (SPACE, PartRetention(True, 5, "screen")),
    ]


def test_3_4_13_texts_are_never_joined():
    result = added(AdditionalContent((Text("a"), Text("b"), Text("c")), True, 2))
    assert saved(result)[1] == (None, 2, 2, 2, 2, 2)
    assert result.message.parts[2:5] == (Text("a"), Text("b"), Text("c"))


def test_3_4_18_a_part_without_retention_is_an_error():
    result = added(one("a", 2))
    for kept in (result.kept[:-1], (*result.kept, PartRetention()), ()):
        with pytest.raises(BadMessage, match=f"has 4 parts, but {len(kept)} retentions"):
            display_parts(result.message, kept)
        with pytest.raises(BadMessage, match=f"has 4 parts, but {len(kept)} retentions"):
            persistent_parts(result.message, kept)


# -------------------------------------------------------------------------------------------------------- and the rest


def test_content_without_blocks_has_no_header_and_spacing():
    assert added(one("", 3), AdditionalContent((), True, True)) == EnrichedMessage(SAID, (PartRetention(),))


def test_each_plugin_has_its_header_in_order():
    result = enrich(user("Hi."), [("b {x}", [one("1")]), ("a", [one("", 2)]), ("a", [one("2", 1, display=False)])])
    texts = [part.text for part in result.message.parts if isinstance(part, Text)]
    assert texts == ["Hi.", "\n### PLUGIN b {x} CONTEXT ###\n", "1", "\n", "\n### PLUGIN a CONTEXT ###\n", "2", "\n"]
    assert [kept.plugin for kept in result.kept] == ["", "b {x}", "b {x}", "b {x}", "a", "a", "a"]


def test_header_and_spacing_are_configurable():
    result = enrich(SAID, [("screen", [one("a")])], header="[{name}]", spacing="--")
    assert shown(result)[1:] == (Text("[screen]"), Text("a"), Text("--"))
    assert shown(enrich(SAID, [("screen", [one("a")])], header="", spacing="")) == (*SAID.parts, Text("a"))


def test_content_is_added_inside_a_tool_result():
    result = enrich(answer("c1", "ok"), [("screen", [AdditionalContent((SHOT,), True, 2)])])
    assert result.message == Message("tool", (ToolResult("c1", (Text("ok"), HEADER, SHOT, SPACE)),))
    assert [kept.calls for kept in result.kept] == [None, 2, 2, 2]
    assert retained_parts(result.message) == (Text("ok"), HEADER, SHOT, SPACE)


@pytest.mark.parametrize("message", [say("I think."), system("You mend tests.")])
def test_adding_to_assistant_and_system_messages_is_refused(message: Message):
    with pytest.raises(BadMessage, match=f"cannot add to a message of role {message.role}"):
        enrich(message, [])


def test_changing_the_plugins_list_changes_no_message():
    blocks = [Text("a")]
    result = added(AdditionalContent(blocks))  # type: ignore[arg-type]
    blocks[:] = [Text("changed")]
    assert shown(result)[2] == Text("a")


@given(
    contents=st.lists(
        st.builds(one, st.sampled_from(["a", "", "b c"]), st.sampled_from([False, True, -1, 0, 1, 3]), st.booleans())
    ),
    into=st.sampled_from([SAID, answer("c1", "ok"), Message("user"), user("Look.", SHOT)]),
)
def test_own_parts_come_first_and_are_recovered(contents: list, into: Message):
    result = enrich(into, [("p", contents), ("q", contents)])
    own = len(retained_parts(into))
    assert len(result.kept) == len(retained_parts(result.message))
    assert result.kept[:own] == (PartRetention(),) * own
    assert shown(result)[:own] == saved(result)[0][:own] == retained_parts(into)
    stamp = Stamp(0, 0, 0, "user", retention=Retention(1, result.kept) if result.kept else None)
    assert own_message(result.message, stamp) == into
    lasting = [content for content in contents if content.blocks and content.calls != 0]
    assert len(saved(result)[0]) == own + 2 * (bool(lasting) + 2 * len(lasting))
    now = [content for content in contents if content.blocks and content.display_on_current_message]
    assert len(shown(result)) == own + 2 * (bool(now) + 2 * len(now))
