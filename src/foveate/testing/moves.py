"""Moves that build histories for tests: each adds valid or invalid messages.

A move is a number with two parameters. Smaller numbers are simpler moves, so a search for the smallest failing example
only makes numbers smaller. There is no randomness here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final, Literal, TypeVar

from ..core.edits import (
    Bill,
    Edit,
    Hide,
    Pin,
    Replace,
    Restore,
    Span,
    Summarize,
    SummaryRole,
    Target,
    Task,
    Unpin,
)
from ..core.messages import (
    Content,
    Extra,
    Media,
    Message,
    Opaque,
    Part,
    Reasoning,
    ResultState,
    Role,
    Text,
    ToolCall,
    ToolResult,
)
from ..core.stamps import Usage

__all__ = ["MOVES", "NOWHERE", "TEXTS", "edit_of", "history_of", "message_of", "run_of"]

TINY_PNG: Final = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

TEXTS: Final = (
    "ok",
    "Fix the login test.",
    "def parse_header(line: str) -> dict[str, int]:\n    return {}\n" * 40,
    "src/auth/session.py:41: KeyError: 'token'\n" * 12,
    '{"id": "ticket-7f3a", "open": true, "tags": ["a", "b"]}',
    "trailing space \n",
    "",
    " \n\t ",
    "żółw 試験 🧪 e\u0301 \u200b\u202eabc",
    "nul \x00 and bell \x07 and escape \x1b[31m",
    "x" * 5_000,
    "[cleared] `tool_use` </system> m1 m2 m3",
)
ARGUMENTS: Final = (
    "{}",
    '{"path":"src/auth/session.py"}',
    '{"command": "pytest -q", "text": "' + "line of code\\n" * 100 + '"}',
    '{"deep":{"list":[1,2.50,null,{"k":"\\u00e9"}]}, "n":1e3}',
    '{"path":"src/auth/ses',
    "",
    "null",
    "[1, 2]",
    '"text"',
    '{"half":"\\ud83d"}',
    "NaN",
)
NAMES: Final = ("read_file", "bash", "grep", "mcp__files__read", "functions.bash", "with space", "", "t" * 70)
SERVER_TOOLS: Final = ("web_search", "web_fetch", "code_execution", "bash_code_execution", "tool_search_tool_regex")
"""Tools that Anthropic runs."""
ODD_IDS: Final = ("", "call#2", "call 3", "ж", "a" * 90, "a\x00b")
STATES: Final[tuple[ResultState, ...]] = ("ok", "ok", "error", "interrupted")
ROLES: Final[tuple[SummaryRole, ...]] = ("user", "assistant", "system")
TASKS: Final[tuple[Literal["pending", "done", "failed", "skipped"], ...]] = ("pending", "done", "failed", "skipped")
MEDIA: Final = (
    Media("image/png", "base64", TINY_PNG),
    Media("image/png", "url", "https://example.com/shot.png"),
    Media("application/pdf", "base64", "JVBERi0xLjQK", "notes.pdf"),
    Media("", "file", "file-7"),
    Media("image/tiff", "base64", "not base64!"),
    Media("audio/wav", "base64", "UklGRg=="),
)
REASONING: Final = (
    Reasoning("I should look first.", "c2lnbmVk", format="anthropic"),
    Reasoning("", "aGlkZGVu", format="anthropic"),
    Reasoning("unsigned", format="anthropic"),
    Reasoning(encrypted="ZW5jcnlwdGVk", format="anthropic"),
    Reasoning("from elsewhere", format="openai"),
    Reasoning("of nobody"),
    Reasoning("a thought", format="gemini"),
    Reasoning("", "c2lnbmVk", format="gemini"),
    Reasoning(),
    Reasoning("I look.", "", "Z0FBQUFB", "openai_responses", Extra("openai_responses", '{"id":"rs_1"}')),
    Reasoning("", "", "", "openai_responses", Extra("openai_responses", '{"id":"rs_2"}')),
)
OPAQUES: Final = (
    Opaque("anthropic", "container_upload", '{"type":"container_upload","file_id":"file_1"}'),
    Opaque("anthropic", "future_block", '{"type":"future_block","x":[1,2.50]}'),
    Opaque("openai", "video_url", '{"type":"video_url","video_url":{"url":"https://example.com/a.mp4"}}'),
    Opaque("gemini", "executableCode", '{"executableCode":{"language":"PYTHON","code":"1"}}'),
    Opaque("other", "mystery", '{"type":"mystery"}'),
    Opaque("openai_responses", "web_search_call", '{"type":"web_search_call","id":"ws_1","status":"completed"}'),
    Opaque("openai_responses", "content:input_video", '{"type":"input_video","url":"https://example.com/a.mp4"}'),
)
EXTRAS: Final = (
    Extra("anthropic", '{"citations":null}'),
    Extra("openai", '{"annotations":[]}'),
    Extra("gemini", '{"thoughtSignature":"c2lnbmVk"}'),
    Extra("other", '{"x_internal":{"a":1}}'),
    Extra("openai_responses", '{"id":"msg_1","content":"list"}'),
)
NOWHERE: Final = ("", "0" * 40, "no such message", "m1")
PATHS: Final = ((), (), (), (0,), (1,), (0, 0), (0, 1), (7,), (0, 0, 0))
CONTENTS: Final[tuple[tuple[Text | Media, ...], ...]] = (
    (Text("[cleared]"),),
    (Text('{"path":"[shortened]"}'),),
    (Text("[cleared: expand m2]"), Text("and more")),
    (MEDIA[0],),
    (Text(""),),
    (Text(" "),),
    (Text("not json {"),),
    (),
)


_T = TypeVar("_T")


def _pick(pool: Sequence[_T], number: int) -> _T:
    return pool[number % len(pool)]


class _Talk:
    """A history under construction: its messages, open calls and used ids."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.open: list[str] = []
        self.used: list[str] = []
        self.served: list[Opaque] = []
        """Results of server tools whose uses wait for them."""
        self.uses = 0

    def say(self, role: Role, *parts: Part, extra: Extra | None = None) -> None:
        self.messages.append(Message(role, parts, extra=extra))

    def call(self, arguments: str = "{}", name: str = "read_file", call_id: str | None = None) -> ToolCall:
        call_id = f"call_{len(self.used)}" if call_id is None else call_id
        self.used.append(call_id)
        self.open.append(call_id)
        return ToolCall(call_id, name, arguments)

    def use(self, number: int) -> Opaque:
        """Return the use of a server tool. Its result waits in `served`."""
        self.uses += 1
        name, id = _pick((*SERVER_TOOLS, "mcp"), number), f"srvtoolu_{self.uses}"
        kind = "tool_search_tool_result" if name.startswith("tool_search") else f"{name}_tool_result"
        self.served.append(Opaque("anthropic", kind, f'{{"type":"{kind}","tool_use_id":"{id}","content":[]}}'))
        used = "mcp_tool_use" if name == "mcp" else "server_tool_use"
        return Opaque("anthropic", used, f'{{"type":"{used}","id":"{id}","name":"{name}","input":{{}}}}')

    def use_of_google(self, number: int) -> tuple[Opaque, Opaque]:
        """Return the use of a tool that Google runs, and its result: with an id, or by order alone."""
        self.uses += 1
        own = f'"id":"srv_{self.uses}",' if number % 3 else ""
        if number % 2:
            code = f'{{"executableCode":{{{own}"language":"PYTHON","code":"1"}},"thoughtSignature":"QQ=="}}'
            output = f'{{"codeExecutionResult":{{{own}"outcome":"OUTCOME_OK","output":"1"}}}}'
            return Opaque("gemini", "executableCode", code), Opaque("gemini", "codeExecutionResult", output)
        call = f'{{"toolCall":{{{own}"toolType":"GOOGLE_SEARCH_WEB","args":{{}}}},"thoughtSignature":"QQ=="}}'
        found = f'{{"toolResponse":{{{own}"toolType":"GOOGLE_SEARCH_WEB","response":{{}}}}}}'
        return Opaque("gemini", "toolCall", call), Opaque("gemini", "toolResponse", found)

    def answer(self, call_id: str, *content: Content, state: ResultState = "ok", extra: Extra | None = None) -> None:
        self.say("tool", ToolResult(call_id, content, state), extra=extra)


def _user(talk: _Talk, a: int, b: int) -> None:
    talk.say("user", Text(_pick(TEXTS, a)))


def _assistant(talk: _Talk, a: int, b: int) -> None:
    talk.say("assistant", Text(_pick(TEXTS, a)))


def _call(talk: _Talk, a: int, b: int) -> None:
    text = (Text(_pick(TEXTS, b)),) if b % 2 else ()
    talk.say("assistant", *text, talk.call(_pick(ARGUMENTS[:4], a)))


def _parallel_calls(talk: _Talk, a: int, b: int) -> None:
    talk.say("assistant", Text("Together."), *(talk.call(_pick(ARGUMENTS[:4], a + i)) for i in range(2 + b % 3)))


def _answer(talk: _Talk, a: int, b: int) -> None:
    if talk.open:
        talk.answer(talk.open.pop(0), Text(_pick(TEXTS, a)), state=_pick(STATES, b))


def _answer_newest(talk: _Talk, a: int, b: int) -> None:
    if talk.open:
        talk.answer(talk.open.pop(), Text(_pick(TEXTS, a)), state=_pick(STATES, b))


def _answer_with_media(talk: _Talk, a: int, b: int) -> None:
    if talk.open:
        talk.answer(talk.open.pop(0), Text("seen"), _pick(MEDIA, a), _pick(MEDIA, b), state=_pick(STATES, a + b))


def _answer_nothing(talk: _Talk, a: int, b: int) -> None:
    if talk.open:
        talk.answer(talk.open.pop(0), state=_pick(STATES, a))


def _answer_again(talk: _Talk, a: int, b: int) -> None:
    if talk.used:
        talk.answer(_pick(talk.used, a), Text("once more"), state=_pick(STATES, b))


def _answer_nobody(talk: _Talk, a: int, b: int) -> None:
    talk.answer(_pick(("call_nowhere", *ODD_IDS), a), Text(_pick(TEXTS, b)))


def _call_same_id(talk: _Talk, a: int, b: int) -> None:
    if talk.used:
        again = _pick(talk.used, a)
        talk.say("assistant", *(talk.call(call_id=again) for _ in range(1 + b % 2)))


def _call_odd_id(talk: _Talk, a: int, b: int) -> None:
    talk.say("assistant", talk.call(call_id=_pick(ODD_IDS, a)), talk.call(call_id=_pick(ODD_IDS, b)))


def _call_badly(talk: _Talk, a: int, b: int) -> None:
    talk.say("assistant", talk.call(_pick(ARGUMENTS, 4 + a), _pick(NAMES, b)))


def _think_and_call(talk: _Talk, a: int, b: int) -> None:
    talk.say("assistant", _pick(REASONING, a), Text("So."), talk.call(_pick(ARGUMENTS, b)))


def _think_and_speak(talk: _Talk, a: int, b: int) -> None:
    talk.say("assistant", _pick(REASONING, a), _pick(REASONING, b), Text("So."))


def _only_think(talk: _Talk, a: int, b: int) -> None:
    talk.say("assistant", _pick(REASONING, a))


def _call_then_speak(talk: _Talk, a: int, b: int) -> None:
    talk.say("assistant", talk.call(), Text(_pick(TEXTS, a)), _pick(REASONING, b), talk.call())


def _user_shows(talk: _Talk, a: int, b: int) -> None:
    talk.say("user", Text("Look."), _pick(MEDIA, a), _pick(MEDIA, b))


def _system(talk: _Talk, a: int, b: int) -> None:
    talk.say("system", Text(_pick(TEXTS, a)))


def _empty(talk: _Talk, a: int, b: int) -> None:
    talk.say(_pick(("user", "assistant", "system"), a))


def _several_texts(talk: _Talk, a: int, b: int) -> None:
    talk.say(_pick(("user", "assistant"), a + b), Text(_pick(TEXTS, a)), Text(_pick(TEXTS, b)), Text("end"))


def _opaque(talk: _Talk, a: int, b: int) -> None:
    if talk.open and b % 2:
        talk.answer(talk.open.pop(0), Text("and"), _pick(OPAQUES, a))
    else:
        talk.say(_pick(("user", "assistant"), b), Text("see"), _pick(OPAQUES, a))


def _serve(talk: _Talk, a: int, b: int) -> None:
    """Use a server tool and get its result, in one message or with a pause between them."""
    before: tuple[Part, ...] = (_pick(REASONING, b), Text("I search.")) if a % 2 else ()
    if b % 3 == 0:
        talk.say("assistant", *before, talk.use(a))
        talk.say("assistant", talk.served.pop(), Text("Found."))
    else:
        use = talk.use(a)
        talk.say("assistant", *before, use, talk.served.pop(), Text("Found."))


def _use_server_tool(talk: _Talk, a: int, b: int) -> None:
    """Use server tools and pause, perhaps with a call of the client."""
    uses = [talk.use(a + i) for i in range(1 + b % 2)]
    calls = (talk.call(),) if b % 3 == 0 else ()
    talk.say("assistant", *uses, *calls)


def _serve_late(talk: _Talk, a: int, b: int) -> None:
    if talk.served:
        result = talk.served.pop(0)
        more = (talk.use(a), talk.call()) if b % 2 else ()
        talk.say("assistant", result, Text("Found."), *more)


def _serve_oddly(talk: _Talk, a: int, b: int) -> None:
    """Repeat a use or a result, leave out an id, or put one into a message of the user or of a tool."""
    use = talk.use(a)
    result = talk.served.pop()
    odd = _pick(("", "call 3", "ж"), a)
    nameless = Opaque("anthropic", "server_tool_use", f'{{"type":"server_tool_use","id":"{odd}","name":"web_search"}}')
    match b % 6:
        case 0:
            talk.say("assistant", Text("Twice."), use, use, result, result)
        case 1:
            talk.say("assistant", result, Text("Backwards."), use)
        case 2:
            talk.say("user", use, Text("Here."), result)
        case 3:
            talk.say("assistant", nameless, Text("Well."))
        case 4 if talk.open:
            talk.answer(talk.open.pop(0), Text("inside"), use, result)
        case _:
            talk.say("assistant", result)


def _google_serves(talk: _Talk, a: int, b: int) -> None:
    """Use a tool that Google runs: in one message, in two, next to a call of the client, backwards, or halfway."""
    use, result = talk.use_of_google(a)
    match b % 7:
        case 0 | 1:
            talk.say("assistant", use, result, Text("Found."))
        case 2:
            talk.say("assistant", Text("I look."), use)
            talk.say("assistant", result, Text("Found."))
        case 3:
            talk.say("assistant", use, result, talk.call())
        case 4:
            talk.say("assistant", result, Text("Backwards."), use)
        case 5:
            again, found = talk.use_of_google(a)
            talk.say("assistant", use, again, found, result)
        case _:
            talk.say("assistant", use, *((talk.call(),) if a % 2 else ()))


def _with_extra(talk: _Talk, a: int, b: int) -> None:
    extra = _pick(EXTRAS, a)
    if talk.open and b % 2:
        talk.answer(talk.open.pop(0), Text("ok", extra), extra=extra)
    else:
        talk.say(_pick(("user", "assistant"), b), Text("hello", extra), extra=extra)


MOVES: Final[tuple[Callable[[_Talk, int, int], None], ...]] = (
    _user,
    _assistant,
    _call,
    _answer,
    _parallel_calls,
    _answer_newest,
    _answer_again,
    _answer_nobody,
    _call_same_id,
    _call_odd_id,
    _call_badly,
    _answer_nothing,
    _answer_with_media,
    _user_shows,
    _system,
    _empty,
    _several_texts,
    _think_and_call,
    _think_and_speak,
    _only_think,
    _call_then_speak,
    _opaque,
    _with_extra,
    _serve,
    _use_server_tool,
    _serve_late,
    _serve_oddly,
    _google_serves,
)


def history_of(moves: Iterable[tuple[int, int, int]]) -> list[Message]:
    """Return the messages of these moves: each the number of one of `MOVES`, and two parameters."""
    talk = _Talk()
    for kind, a, b in moves:
        MOVES[kind](talk, a, b)
    return talk.messages


def run_of(moves: Iterable[tuple[int, int, int]]) -> list[Message]:
    """Return a valid conversation: kinds 0-3, each followed by the results of its calls."""
    talk = _Talk()
    _user(talk, 1, 0)
    for kind, a, b in moves:
        match kind:
            case 0:
                _call(talk, a, 0)
            case 1:
                _parallel_calls(talk, a, b)
            case 2:
                talk.say("assistant", Text("Done."))
                _user(talk, a % 6, 0)
            case _:
                talk.say("assistant", REASONING[0], talk.call(_pick(ARGUMENTS[:4], a)))
        while talk.open:
            _answer(talk, (a + len(talk.open)) % 6, b)
    return talk.messages


def message_of(role: int, made: Sequence[tuple[int, int, int]]) -> Message:
    """Return any message, role 0-9, with parts 0-7. A tool message has exactly one result."""
    if role < 2:
        content = tuple(part for part in map(_part, made) if isinstance(part, Text | Media | Opaque))
        call_id = _pick(("call_0", *ODD_IDS), sum(a for _, a, _ in made))
        return Message("tool", (ToolResult(call_id, content, _pick(STATES, len(made)), _pick(("", *NAMES), role)),))
    parts = tuple(_part(one) for one in made)
    roles: tuple[Role, ...] = ("user", "assistant", "assistant", "system")
    return Message(_pick(roles, role), parts, "alice" if role == 9 else "", EXTRAS[role % 3] if role > 7 else None)


def _part(made: tuple[int, int, int]) -> Part:
    kind, a, b = made
    match kind:
        case 0 | 1:
            return Text(_pick(TEXTS, a))
        case 2:
            return ToolCall(f"call_{b}", _pick(NAMES, b), _pick(ARGUMENTS, a))
        case 3:
            return ToolCall(_pick(ODD_IDS, b), "bash", _pick(ARGUMENTS, a), _pick(EXTRAS, b))
        case 4:
            return _pick(MEDIA, a)
        case 5:
            return _pick(REASONING, a)
        case 6:
            return _pick(OPAQUES, a)
        case _:
            return Text(_pick(TEXTS, a), _pick(EXTRAS, b))


def edit_of(ids: Sequence[str], kind: int, first: int, second: int, flavour: int) -> Edit:
    """Return an edit of kind `kind` modulo 10, at or between two of these ids."""
    target, span = Target(ids[first], _pick(PATHS, flavour)), Span(ids[first], ids[second])
    match kind % 10:
        case 0 | 1 | 2:
            return Replace(target, _pick(CONTENTS, flavour // 9), "test", "a reason", 100, 10, flavour % 7 != 6)
        case 3 | 4:
            return Hide(target if flavour % 3 else span, "test")
        case 5 | 6:
            kept = (ids[(first + second) // 2],) if flavour % 4 == 1 else ()
            text, role = _pick(("The messages so far.", "Short.", "", " "), flavour), _pick(ROLES, flavour // 3)
            return Summarize(span, text, "test", keep=kept, role=role)
        case 7:
            numbers = (1 + flavour % 5,) if flavour % 2 else ()
            return Restore((target,) if flavour % 3 else (span,), numbers) if flavour % 5 else Restore((), (999, 0))
        case 8:
            return Pin(target, _pick(("", "test"), flavour))
        case _ if flavour % 4 == 3:
            return Task("test", _pick(TASKS, flavour // 4), 1, flavour, span)
        case _ if flavour % 4 == 1:
            return Bill(flavour, Usage(flavour, 0, 0, 5), target.message, estimate=flavour)
        case _:
            return Unpin(target)
