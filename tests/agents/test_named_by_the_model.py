"""A model names what it wants back by what its request shows: handles in notes, and indices of messages."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from foveate import LoopAgent, ReActAgent, tool
from foveate.testing import ScriptedModel, call, calls, text_of
from foveate.types import Lease

from .agents import plain
from .loop.documented import DOCUMENTED_TEXTS
from .loop.scripts import act, done, expand, think

FORMATS = ["anthropic", "openai", "openai_responses", "gemini"]
POLICIES = ["balanced", "frugal", "coding", "browser", "keep-last-2", "prune", "expire", "balanced"]
"""The presets whose notes name handles."""
WANTED = 2
"""The page that the model wants back, of 1, 2 and 3."""


def fetch(page: int) -> str:
    """Fetch a page."""
    return f"page {page}\n{text_of(1_500, page)}"


def wait() -> str:
    """Wait."""
    return "waited"


def strings_in(content: Any) -> Iterator[str]:
    """Yield the texts in a message of any format, also those of tool results."""
    match content:
        case str():
            yield content
        case list():
            for item in content:
                yield from strings_in(item)
        case dict():
            for key in ("text", "content", "output", "parts", "functionResponse", "function_response", "response"):
                yield from strings_in(content.get(key))


def texts_in(request: dict[str, Any]) -> list[str]:
    """Return the texts that a model sees after the system prompt, one for each block."""
    messages = request.get("messages") or request.get("contents") or request["input"]
    return [text for message in messages if message.get("role") != "system" for text in strings_in(message)]


def pages_in(request: dict[str, Any]) -> list[tuple[int, int, str]]:
    """Return each page in a request: its index among the texts, its number, and its text."""
    numbered = [(place, re.search(r"page (\d)\n", text), text) for place, text in enumerate(texts_in(request))]
    return [(place, int(found[1]), text) for place, found, text in numbered if found]


class Reader:
    """A model that reads three pages at once, waits until they are shortened, and asks for one of them."""

    def __init__(self, first: Any, idle: Any, ask: Any, last: Any) -> None:
        self._first, self._idle, self._ask, self._last = first, idle, ask, last
        self.whole: list[list[int]] = []
        """The pages that each request shows in full."""
        self._has_asked = False

    def __call__(self, request: dict[str, Any]) -> Any:
        pages = pages_in(request)
        self.whole.append([number for _, number, text in pages if len(text) > 1_000])
        if not pages:
            return self._first
        if self._has_asked:
            return self._last
        if self.whole[-1]:
            return self._idle() if callable(self._idle) else self._idle
        self._has_asked = True
        place, text = next((place, text) for place, number, text in pages if number == WANTED)
        return self._ask(place, text)


def handle_in(text: str) -> str:
    """Return the handle that the note after a shortened text names."""
    (handle,) = re.findall(r"\bm\d+\b", text[text.rindex("[") :])
    return handle


@pytest.mark.parametrize("format", FORMATS)
def test_a_loop_agent_names_a_result_by_the_handle_in_its_note(format: str):
    reader = Reader(
        act(*(("fetch", {"page": page}) for page in (1, 2, 3))),
        think(),
        lambda place, text: expand(handle_in(text)),
        done(),
    )
    model = ScriptedModel(reader, format)
    with LoopAgent(model, actions=[fetch], **plain(policy="expire")) as agent:
        assert agent.run("Read three pages.").is_done
    assert reader.whole[-2:] == [[], [WANTED]]


@pytest.mark.parametrize("format", FORMATS)
def test_a_react_agent_names_a_result_by_the_handle_in_its_note(format: str):
    numbers = iter(range(100))
    reader = Reader(
        calls(*(call(f"c{page}", "fetch", page=page) for page in (1, 2, 3))),
        lambda: call(f"w{next(numbers)}", "wait"),
        lambda place, text: call("e1", "expand", handle=handle_in(text)),
        "Done.",
    )
    model = ScriptedModel(reader, format)
    with ReActAgent(model, tools=[fetch, wait], **plain(policy="expire")) as agent:
        assert agent.run("Read three pages.").is_done
    assert reader.whole[-2:] == [[], [WANTED]]


@pytest.mark.parametrize("format", FORMATS)
def test_an_index_counts_the_results_that_a_loop_agent_sees(format: str):
    """A provider can show several results as one message; the index counts each. It skips those that were removed."""
    peek = tool(lambda: "a title", name="peek", lease=Lease(1, "remove"))
    pages = [("fetch", {"page": page}) for page in (1, 2, 3)]
    reader = Reader(
        act(pages[0], "peek", *pages[1:]),
        think(),
        lambda place, text: expand(place),
        done(),
    )
    model = ScriptedModel(reader, format)
    options = plain(policy="expire", settings={"expire": DOCUMENTED_TEXTS})
    with LoopAgent(model, actions=[fetch, peek], **options) as agent:
        assert agent.run("Read three pages.").is_done
    assert reader.whole[-2:] == [[], [WANTED]]
    assert ["a title" in str(request) for request in model.requests[1:4]] == [True, False, False]
    assert "each result counts as one" in str(model.requests[0])


class Asker:
    """A model that reads twenty pages, and asks for the first, the middle and the last message that a note names."""

    def __init__(self, read: Callable[[int], Any], ask: Callable[[str], Any], last: Any) -> None:
        self._read, self._ask, self._last = read, ask, last
        self.asked: list[tuple[str, list[str]]] = []
        """Each handle, and the texts of the request after it."""
        self._pages = 0

    def __call__(self, request: dict[str, Any]) -> Any:
        texts = texts_in(request)
        if self.asked and not self.asked[-1][1]:
            self.asked[-1][1].extend(texts)
        if self._pages < 20:
            self._pages += 1
            return self._read(self._pages)
        handles = re.findall(r"(?<![\w-])m\d+\b(?!-)", "\n".join(texts))
        if len(self.asked) == 3 or not handles:
            return self._last
        handle = handles[(0, len(handles) // 2, -1)[len(self.asked)]]
        self.asked.append((handle, []))
        return self._ask(handle)


@pytest.mark.slow
@pytest.mark.parametrize(("policy", "format"), list(zip(POLICIES, FORMATS * 2, strict=True)))
@pytest.mark.parametrize("kind", [LoopAgent, ReActAgent])
def test_every_handle_in_a_note_brings_its_message_back(kind: type, policy: str, format: str):
    numbers = iter(range(100))
    if kind is LoopAgent:
        asker = Asker(lambda page: act(("fetch", {"page": page})), expand, done())
    else:
        asker = Asker(
            lambda page: call(f"c{page}", "fetch", page=page),
            lambda handle: call(f"e{next(numbers)}", "expand", handle=handle),
            "Done.",
        )
    model = ScriptedModel(asker, format)
    tools = {"actions": [fetch]} if kind is LoopAgent else {"tools": [fetch]}
    with kind(model, **tools, **plain(policy=policy, window=24_000)) as agent:
        assert agent.run("Read twenty pages.").is_done
        originals = [agent.conversation.original(handle) for handle, _ in asker.asked]
    assert len(asker.asked) == 3
    contents = [original.result.text if original.result else original.text for original in originals]
    assert any(len(content) > 1_000 for content in contents)
    for content, (_, texts) in zip(contents, asker.asked, strict=True):
        assert any(content in text for text in texts)
