"""Bodies of requests: a list that begins as an earlier one is read from there on only, with the same result."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foveate.core.caches import clear_caches
from foveate.requests import ListMemory, RequestBody, api_for, body

LONG = {"role": "user", "content": "word " * 5_000}
"""A message that makes a body long enough to be remembered."""
ANTHROPIC, RESPONSES = api_for("anthropic"), api_for("openai_responses")
MARKED = {"role": "user", "content": [{"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}}]}


def message(number: int) -> dict[str, Any]:
    return {"role": "user", "content": f"message {number}"}


def written(messages: list[Any], separators: tuple[str, str] = (", ", ": "), **fields: Any) -> bytes:
    return json.dumps({"model": "m", "messages": messages, **fields}, separators=separators).encode()


def seen(read: RequestBody) -> tuple[object, ...]:
    """Everything that a body shows."""
    fields = {key: bytes(raw) for key, raw in read.fields.items() if key != "messages" or read.items is None}
    return list(read.fields), fields, read.items, read.values, read.marked, read.value("tools"), read.value("none")


@pytest.fixture
def decoded(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Sizes of the texts that are decoded into fields."""
    sizes: list[int] = []
    decoder = body._FIELDS

    class Counting:
        def decode(self, content: bytes) -> Any:
            sizes.append(len(content))
            return decoder.decode(content)

    monkeypatch.setattr(body, "_FIELDS", Counting())
    return sizes


def test_a_list_that_grows_is_read_from_its_new_part_on(decoded: list[int]):
    memory, messages = ListMemory(), [LONG, message(1)]
    first = RequestBody(ANTHROPIC, written(messages, tools=[{"name": "a"}]), memory)
    tools = first.value("tools")
    second = RequestBody(ANTHROPIC, written([*messages, message(2), message(3)], tools=[{"name": "a"}]), memory)
    assert decoded[0] > 20_000 > 500 > decoded[1]
    assert len(decoded) == 2
    assert second.items is not None
    assert first.items is not None
    assert [item is before for item, before in zip(second.items, first.items, strict=False)] == [True, True]
    assert second.value("tools") is tools
    assert [json.loads(item) for item in second.items] == [*messages, message(2), message(3)]


def test_a_moved_cache_mark_is_read_again(decoded: list[int]):
    memory = ListMemory()
    assert RequestBody(ANTHROPIC, written([LONG, message(1), MARKED]), memory).marked == [2]
    again = RequestBody(ANTHROPIC, written([LONG, message(1), message(2), MARKED]), memory)
    assert again.marked == [3]
    assert decoded[1] < 500


def test_lists_with_equal_beginnings_are_all_remembered(decoded: list[int]):
    memory = ListMemory()
    lists = [[LONG, *(message(number) for number in range(1, 9)), {"role": "user", "content": name}] for name in "abc"]
    for _ in range(2):
        for number, messages in enumerate(lists):
            read = RequestBody(ANTHROPIC, written(messages), memory)
            assert read.values == messages, number
    assert max(decoded[3:]) < 500


def test_another_owner_shares_no_list(decoded: list[int]):
    memory = ListMemory()
    for owner in ("a", "b"):
        RequestBody(ANTHROPIC, written([LONG, message(1)]), memory, owner)
    assert min(decoded) > 20_000


def test_an_erasure_forgets_the_lists(decoded: list[int]):
    memory = ListMemory()
    RequestBody(ANTHROPIC, written([LONG, message(1)]), memory)
    clear_caches()
    RequestBody(ANTHROPIC, written([LONG, message(1)]), memory)
    assert min(decoded) > 20_000


def test_a_memory_of_lists_is_bounded(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(body, "_LISTS_MAX", 20)
    memory, counts = ListMemory(), list[int]()
    for number in range(50):
        RequestBody(ANTHROPIC, written([message(number), LONG, message(1)]), memory)
        RequestBody(ANTHROPIC, written([LONG, *[message(number)] * 3]), memory)
        counts.append(sum(map(len, memory._lists.values())))
        assert max(map(len, memory._lists.values())) <= 16
    assert counts[-1] == max(counts) == 20


def test_a_memory_of_lists_is_bounded_in_bytes(monkeypatch: pytest.MonkeyPatch, decoded: list[int]):
    monkeypatch.setattr(body, "_BYTES_MAX", 60_000)
    memory = ListMemory()
    for number in (*range(4), 3, 2, 1, 0):  # Each has 25 kB.
        RequestBody(ANTHROPIC, written([message(number), LONG, message(1)]), memory)
    assert [size < 1_000 for size in decoded] == [False] * 4 + [True] * 2 + [False] * 2
    large = written([{"role": "user", "content": "word " * 20_000}, message(1)])
    for _ in range(2):
        RequestBody(ANTHROPIC, large, memory)
    assert decoded[-1] < 1_000
    assert sum(map(len, memory._lists.values())) == 1


def _twice(messages: list[Any]) -> bytes:
    """A body with its list twice. The second one counts."""
    head = written(messages)[:-1]
    return head + b', "messages": ' + json.dumps([message(9), *messages[:2]]).encode() + b"}"


def _nested(messages: list[Any]) -> bytes:
    """A body with the same list inside another field, in front of its own one."""
    return written([], system={"messages": messages})[:-1] + b', "messages": ' + json.dumps(messages).encode() + b"}"


def _with_a_mark(messages: list[Any]) -> bytes:
    return written([LONG, '"', 17, *messages])


WRITERS: list[Callable[[list[Any]], bytes]] = [
    written,
    lambda messages: written(messages, tools=[{"name": "a"}], system=messages),
    lambda messages: written(messages, tools=[{"name": "b"}]),
    lambda messages: written(messages, (",", ":")),
    lambda messages: written(messages, (",\n  ", ": ")),
    lambda messages: b" " + written(messages) + b"\n",
    lambda messages: json.dumps({"tools": [{"name": "a"}], "messages": messages, "model": "m"}).encode(),
    lambda messages: json.dumps({"model": "m", "messages": "text " * 5_000}).encode(),
    _twice,
    _nested,
    _with_a_mark,
]


@given(
    st.lists(
        st.tuples(
            st.sampled_from(WRITERS),
            st.lists(st.sampled_from([LONG, MARKED, *map(message, range(4)), {}, {"a": [{}]}]), max_size=6),
            st.booleans(),
        ),
        min_size=2,
        max_size=8,
    )
)
def test_a_body_reads_the_same_with_a_memory(steps: list[tuple[Callable[[list[Any]], bytes], list[Any], bool]]):
    memory, before = ListMemory(), list[Any]()
    for write, messages, goes_on in steps:
        before = [*before, *messages] if goes_on else [LONG, *messages]
        content = write(before)
        assert seen(RequestBody(ANTHROPIC, content, memory)) == seen(RequestBody(ANTHROPIC, content))


@given(st.integers(0, 60), st.sampled_from([b"", b"}", b"]}", b',{"a":1}]}', b'"', b"]}{", b", 1]}"]))
def test_a_cut_body_is_refused_as_without_a_memory(cut: int, end: bytes):
    memory, messages = ListMemory(), [LONG, message(1), message(2)]
    RequestBody(ANTHROPIC, written(messages), memory)
    content = written(messages)[: -1 - cut] + end
    results: list[object] = []
    for known in (memory, None):
        try:
            results.append(seen(RequestBody(ANTHROPIC, content, known)))
        except ValueError as error:
            results.append(str(error))
    assert results[0] == results[1]
