"""Values of derived types are values, and wrong ones are refused: no public call raises a bare TypeError."""

from __future__ import annotations

import enum
import inspect
import json
from collections.abc import Callable, Iterator
from numbers import Integral
from typing import Any

import pytest

from foveate import (
    Conversation,
    FoveateError,
    Message,
    Options,
    Text,
    ToolCall,
    ToolResult,
    Usage,
    assistant,
    open_conversation,
    user,
)
from foveate.core.stamps import Lease, PartRetention
from foveate.edits import Hide, Pin, Replace, Target
from foveate.errors import BadMessage
from foveate.formats import get_format
from foveate.testing import answer, call, say

from .expand_requests import LOG

FORMATS = ("openai", "anthropic", "openai_responses", "gemini")


class Str(str):
    """A string as LangChain and numpy have them: its `str()` is another text."""

    def __str__(self) -> str:
        return "another text"


class Word(str, enum.Enum):  # noqa: UP042 - StrEnum has another `str()`
    ROLE = "user"


class Number(enum.IntEnum):
    TWO = 2


class Float(float):
    pass


class Numpy:
    """An integer that is no int, as numpy's."""

    def __index__(self) -> int:
        return 2

    __int__ = __index__


Integral.register(Numpy)

ODD: list[Any] = [
    *(
        None,
        True,
        -1,
        2,
        1.5,
        float("nan"),
        float("inf"),
        "",
        "m2",
        b"x",
        [],
        {},
        (),
        set(),
        object(),
        len,
        10**30,
    ),
    *(
        "\ud800",
        "\0",
        1 + 2j,
        Str("m2"),
        Word.ROLE,
        Number.TWO,
        Float(1.5),
        Numpy(),
        [Str("x")],
        {1: 2},
        {"a": object()},
    ),
    *(Text(Str("x")), Message("user", (Text(Str("hi")),)), Usage("x"), Usage(1.5), Usage(Number.TWO), PartRetention()),
    *(Lease(expiration_turns=Number.TWO), Pin(Target(Str("x"))), Hide("m2"), {"role": "user", "content": {Str("x")}}),
]


def story(provider: str) -> Conversation:
    options = Options(clock=lambda: 5)
    chat = open_conversation("c", window=20_000, policy="keep-last-1", format=provider, options=options)
    chat.append([user("go"), call("c1", "look"), answer("c1", LOG), say("ok"), user("on")])
    return chat


REQUIRED: dict[str, dict[str, Any]] = {
    "bill": {"call": "m4", "usage": Usage(1)},
    "append": {"message": user("hey")},
    "record": {"reply": assistant("hey")},
    "as_of": {"turn": 1},
    "apply_retention": {"ages": {"media": "30 days"}},
}


def doors(chat: Conversation) -> Iterator[tuple[str, Callable[[], object]]]:
    """Yield a call of each public method for each of its parameters and each odd value."""
    for kind in (chat, chat.journal, chat.privacy):
        for name, method in inspect.getmembers(kind, callable):
            if name.startswith("_") or name in ("close", "retry_smaller"):
                continue
            parameters = inspect.signature(method).parameters
            missing = {key: "m2" for key, one in parameters.items() if one.default is one.empty}
            for key, parameter in parameters.items():
                for value in ODD:
                    if parameter.kind is parameter.VAR_POSITIONAL:
                        yield f"{name}({value!r})", lambda method=method, value=value: method(value)
                    else:
                        arguments = {**missing, **REQUIRED.get(name, {}), key: value}
                        yield (
                            f"{name}({key}={value!r:.60})",
                            lambda method=method, arguments=arguments: method(**arguments),
                        )


@pytest.mark.parametrize("provider", FORMATS)
def test_no_public_call_raises_a_bare_error(provider):
    chat, failures, count = story(provider), [], 0
    for label, door in doors(chat):
        count += 1
        try:
            door()
        except FoveateError:
            pass
        except Exception as error:
            failures.append(f"{label}: {error!r}")
        if len(chat) > 40:
            chat = story(provider)
    assert failures == []
    assert count > 1_000


@pytest.mark.parametrize("provider", ["openai", "anthropic"])
def test_conversation_works_after_every_odd_value(provider):
    for chat in (story(provider) for _ in range(1)):
        for _, door in doors(chat):
            try:
                door()
            except FoveateError:
                continue
        assert chat.journal.verify() == []
        assert len(chat.history()) == len(chat)
        (chat.totals(), chat.context(), chat.journal.events(), chat.prepare())


def derived(value: Any) -> Any:
    """Return a JSON value whose strings and numbers are of derived types."""
    match value:
        case dict():
            return {Str(key): derived(inner) for key, inner in value.items()}
        case list():
            return [derived(inner) for inner in value]
        case bool() | None:
            return value
        case str():
            return Str(value)
        case int():
            return Number.TWO if value == 2 else value
        case _:
            return Float(value)


CALLS = [
    user("go"),
    Message("assistant", (Text("Let me look."), ToolCall("c1", "look", '{"n":2,"x":1.5}'))),
    answer("c1", "two lines\nof text", name="look"),
    say("Done."),
    user("on"),
]


@pytest.mark.parametrize("provider", FORMATS)
def test_messages_of_derived_types_are_read_as_plain_ones(provider):
    plain, odd = (
        open_conversation(name, window=20_000, format=provider, options=Options(clock=lambda: 5)) for name in "ab"
    )
    plain.append(CALLS)
    body = json.loads(plain.body())
    messages = next(body[key] for key in ("messages", "contents", "input") if key in body)
    for one, items in ((plain, messages), (odd, derived(messages))):
        one = open_conversation(one.name + "2", window=20_000, format=provider, options=Options(clock=lambda: 5))
        one.append(items)
        tools = [{"name": "look", "input_schema": {"type": "object", "x-n": 2}}]
        system = "Be brief."
        if items is not messages:
            tools, system = derived(tools), Str(system)
        bodies = one.body(system=system, tools=tools), [row.message for row in one.history()], one.tip
        if items is messages:
            wanted = bodies
    assert bodies == wanted
    assert all(type(part.text) is str for message in bodies[1] for part in message.parts if isinstance(part, Text))


@pytest.mark.parametrize("store", ["memory:", "sqlite"])
def test_arguments_of_derived_types_are_stored_as_plain_ones(store, tmp_path):
    url = "memory:" if store == "memory:" else f"sqlite:///{tmp_path / 'c.db'}"
    with open_conversation(Str("c"), store=url, window=20_000, model=Str("gpt-5"), policy=Str("none")) as chat:
        chat.append(Message("user", (Text(Str("go")),)), time=Numpy(), metadata={Str("a"): Word.ROLE, "n": Number.TWO})
        reply = chat.record(assistant(Str("ok")), usage=Usage(Numpy(), None, None, Number.TWO))
        chat.append(Message("tool", (ToolResult(Str("c9"), (Text(Str("late")),)),)))
        chat.edit(Replace(Target(Str(reply)), (Text(Str("short")),), reason=Str("because")))
        chat.pin(Str("m1"))
        chat.undo(Number.TWO)
        chat.expand(Str("m2"), reason=Word.ROLE)
        assert chat.history(Number.TWO, Numpy())[0].id == reply
        first, second, *_ = chat.history()
        assert (first.metadata, first.stamp.time, second.stamp.usage) == (
            {"a": "user", "n": 2},
            2,
            Usage(2, None, None, 2),
        )
        assert [type(chat.name), type(chat.journal.records()[0].edits[0].reason)] == [str, str]
        assert chat.journal.records()[0].edits[0].reason == "because"
        assert chat.search(Str("late"), limit=Numpy()) == []
        assert chat.journal.verify() == []


@pytest.mark.parametrize("wrong", [Usage("x"), Usage(1.5), Usage(-1), Usage(True), Usage(None, "5"), Usage(2**70), 5])
def test_usage_that_is_no_number_of_tokens_is_refused(wrong):
    chat = story("openai")
    for refused in (lambda: chat.record(assistant("x"), usage=wrong), lambda: chat.bill("m4", wrong)):
        with pytest.raises(FoveateError, match=r"usage=|Usage\("):
            refused()
    assert (len(chat), chat.totals().calls_billed) == (5, 0)


@pytest.mark.parametrize("wrong", [5, "look", {"name": "look"}, True, object(), b"x"])
def test_tools_that_are_no_list_are_refused(wrong):
    chat = story("openai")
    for ask in (chat.prompt, chat.body, chat.prepare, chat.plan):
        with pytest.raises(FoveateError, match="tools= must be a list"):
            ask(tools=wrong)


def test_values_that_are_not_json_are_refused_still():
    for value in (object(), 1 + 2j, float("nan")):
        with pytest.raises(BadMessage):
            get_format("openai").parse({"role": "user", "content": [{"type": "custom", "x": value}]})
