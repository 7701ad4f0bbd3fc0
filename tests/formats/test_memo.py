from __future__ import annotations

import gc
import json
from itertools import pairwise
from typing import Any

import msgspec
import pytest
from format_views import IMAGE, entries, entry, loop, view

from foveate.core.messages import Extra, Message, Text, ToolCall, assistant, system, tool_result, user
from foveate.core.profiles import PROFILES
from foveate.errors import UnknownFormat
from foveate.formats import get_format
from foveate.formats.anthropic import Anthropic
from foveate.formats.openai import OpenAIChat

PROFILE = PROFILES["anthropic"]
STRICT = msgspec.structs.replace(PROFILE, strict=True)


def test_changing_a_prompt_does_not_change_the_next_one():
    format, tools, rules = Anthropic(), [{"name": "a", "input_schema": {"x": []}}], [{"type": "text", "text": "s"}]
    call = assistant("", ToolCall("a", "f", '{"deep":{"list":[{"n":1}]}}'))
    shown = view(system("rules"), user("u", IMAGE), call, tool_result("a", "1", IMAGE))

    def ask() -> dict[str, Any]:
        return format.prompt(shown, profile=PROFILE, system=rules, tools=tools)

    def spoil(value: Any) -> None:
        for inner in value.values() if isinstance(value, dict) else value:
            if isinstance(inner, dict | list):
                spoil(inner)
        value.clear()

    before, body = json.dumps(ask()), format.body(shown, profile=PROFILE)
    spoil(ask())
    format.rendered(shown, profile=PROFILE).clear()
    assert (json.dumps(ask()), format.body(shown, profile=PROFILE)) == (before, body)
    assert (tools, rules) == ([{"name": "a", "input_schema": {"x": []}}], [{"type": "text", "text": "s"}])


def test_a_body_equals_the_prompt_without_marks():
    shown = view(system("rules"), *loop(30))
    tools = [{"name": "f", "input_schema": {"type": "object"}}]
    for entries_shown in ((), (system("rules"),), tuple(shown.entries)):
        format = Anthropic()
        body = format.body(view(*entries_shown), profile=PROFILE, system="s", tools=tools)
        prompt = json.loads(json.dumps(format.prompt(view(*entries_shown), profile=PROFILE, system="s", tools=tools)))
        for block in [*prompt["system"], *prompt["tools"], *(b for m in prompt["messages"] for b in m["content"])]:
            block.pop("cache_control", None)
        assert json.loads(body) == prompt
        assert list(json.loads(body)) == ["system", "tools", "messages"]


def test_a_longer_view_extends_the_body_byte_for_byte():
    """F27: with no new edit, each rendering extends the last one."""
    format, shown = Anthropic(), entries(system("s"), *loop(10))
    bodies = [format.body(view(*shown[: 3 + 2 * n]), profile=PROFILE, system="x") for n in range(1, 10)]
    for before, after in pairwise(bodies):
        assert after.startswith(before.removesuffix(b"]}"))


def test_unchanged_entries_keep_their_bytes_and_changed_ones_do_not():
    format, shown = Anthropic(), list(entries(*loop(50)))
    before = format.rendered(view(*shown), profile=PROFILE)
    shown[50] = entry(tool_result("c24", "[cleared]"), shown[50].stamp.turn, 51)
    after = format.rendered(view(*shown), profile=PROFILE)
    assert [place for place, (a, b) in enumerate(zip(before, after, strict=True)) if a is not b] == [50]
    assert after == Anthropic().rendered(view(*shown), profile=PROFILE)


@pytest.mark.parametrize("name", ["anthropic", "openai"])
def test_earlier_views_do_not_change_the_bytes(name: str):
    """The cache compares identities; these views share, omit, repeat and regroup entries in many ways."""
    format, profile = get_format(name), PROFILES[name]
    pool = [
        *entries(system("s"), system("t"), *loop(6), user("x"), system("y")),
        entry(tool_result("late", "l", IMAGE), 3),
    ]
    state = 7
    for _ in range(400):
        state = state * 6364136223846793005 % 2**64
        bits = state >> 40
        picked = [each for place, each in enumerate(pool) if bits >> (place % 22) & 1 or place < bits % 9]
        shown = view(*picked) if picked else view()
        assert format.rendered(shown, profile=profile) == get_format(name).rendered(shown, profile=profile)


def test_a_system_message_is_rewritten_when_it_stops_leading():
    format, message, rule = Anthropic(), entry(user("u")), entry(system("rule"), 1)
    assert "system" in format.prompt(view(rule), profile=PROFILE)
    assert format.rendered(view(message, rule), profile=PROFILE) == Anthropic().rendered(
        view(message, rule), profile=PROFILE
    )


def test_another_profile_clears_the_cache():
    format = Anthropic()
    shown = view(Message("user", (Text("t", Extra("anthropic", '{"new":1}')),)))
    assert b"new" in format.body(shown, profile=PROFILE)
    assert b"new" not in format.body(shown, profile=STRICT)
    assert b"new" in format.body(shown, profile=PROFILE)


def test_the_cache_stays_near_the_size_of_the_view():
    format = Anthropic()
    for turn in range(300):
        format.rendered(view(entry(user(str(turn)), turn), entry(assistant("a"), turn)), profile=PROFILE)
    assert len(format._memo._groups) + len(format._memo._stale) <= 2 + 4


def test_a_program_that_sends_bytes_holds_no_dicts():
    format, asked = OpenAIChat(), OpenAIChat()
    shown = view(user("a"), assistant("b"), user("c"))
    asked.prompt(shown, profile=PROFILES["openai"])
    for each in (format, asked):
        each.body_parts(shown, profile=PROFILES["openai"])
    assert format._memo._wires == [None] * 3
    assert format.prompt(shown, profile=PROFILES["openai"]) == asked.prompt(shown, profile=PROFILE)
    assert format._memo._wires == asked._memo._wires == format._memo.wires
    grown = view(*shown.entries, assistant("d"))
    format.body_parts(grown, profile=PROFILES["openai"])
    assert None not in format._memo._wires  # It asked for dicts before, so it may ask again.


def test_each_conversation_has_its_own_format():
    assert [get_format(name).name for name in ("openai", "openai_chat", "anthropic")] == [
        "openai",
        "openai",
        "anthropic",
    ]
    assert get_format("anthropic") is not get_format("anthropic")
    with pytest.raises(
        UnknownFormat, match=r"^There is no format 'gemini!'\. Known: openai, openai_responses, anthropic, gemini\.$"
    ):
        get_format("gemini!")


FORMATS = ["anthropic", "openai", "openai_responses", "gemini"]


@pytest.mark.parametrize("name", FORMATS)
def test_a_shared_prompt_equals_a_new_one_and_shares_messages(name: str):
    format, profile, shown = get_format(name), PROFILES[name], entries(system("s"), *loop(60))
    key = {"openai_responses": "input", "gemini": "contents"}.get(name, "messages")
    first = format.prompt(view(*shown[:-2]), profile=profile, system="x", shared=True)[key]
    second = format.prompt(view(*shown), profile=profile, system="x", shared=True)[key]
    assert second == format.prompt(view(*shown), profile=profile, system="x")[key]
    same = sum(a is b for a, b in zip(first, second, strict=False))
    assert same >= 55  # Anthropic's newest messages are copied for their cache marks.
    assert second == format.prompt(view(*shown), profile=profile, system="x", shared=True)[key]


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("count", [0, 1, 12])
def test_the_parts_of_a_body_are_the_body(name: str, count: int):
    format, profile = get_format(name), PROFILES[name]
    shown, tools = entries(*loop(20))[:count], [{"name": "f", "input_schema": {"type": "object"}}]
    for options in ({}, {"system": "s"}, {"system": "s", "tools": tools}):
        parts = format.body_parts(view(*shown), profile=profile, **options)
        assert b"".join(parts) == format.body(view(*shown), profile=profile, **options)


def test_unchanged_messages_are_the_same_parts_of_a_body():
    format, shown = get_format("openai"), entries(*loop(20))
    first = format.body_parts(view(*shown[:-2]), profile=PROFILES["openai"])
    second = format.body_parts(view(*shown), profile=PROFILES["openai"])
    assert all(a is b for a, b in zip(first[1:-1], second[1:], strict=False))


def test_bytes_are_made_only_for_those_who_ask_for_them(monkeypatch: pytest.MonkeyPatch):
    encoded: list[object] = []
    monkeypatch.setattr("foveate.formats.memo.encode", lambda wire: encoded.append(wire) or b"{}")
    format, shown = get_format("openai"), entries(*loop(20))
    format.prompt(view(*shown), profile=PROFILES["openai"])
    assert not encoded
    format.body(view(*shown), profile=PROFILES["openai"])
    assert len(encoded) == len(shown)
    format.body(view(*shown, *entries(*loop(21))[-2:]), profile=PROFILES["openai"])
    assert len(encoded) == len(shown) + 2


def test_copying_messages_leaves_the_collector_as_it_was():
    format, shown = get_format("openai"), entries(*loop(20))
    assert gc.isenabled()
    for is_on in (False, True):
        (gc.enable if is_on else gc.disable)()
        try:
            format.prompt(view(*shown), profile=PROFILES["openai"])
            assert gc.isenabled() is is_on
        finally:
            gc.enable()
