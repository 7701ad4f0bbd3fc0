"""Summaries by a model: renders a request, sends it and reads the answer; long histories are summarised in parts.

It knows the port `Model` and the format that is passed, no SDK and no provider. The same code serves sync and async
models. `acceptance.py` judges the texts.
"""

from __future__ import annotations

import inspect
import json
import re
import threading
import time
from collections.abc import Generator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from ..core.call_context import Budget
from ..core.length_errors import is_too_long
from ..core.messages import Message, user
from ..core.profiles import profile_for, window_of
from ..core.stamps import Stamp
from ..core.summaries import Summary, SummaryRequest, read_answer, replace_surrogates
from ..core.view import Entry, View
from ..errors import BadSetting, NoSummary
from ..ports import Format, Model, Summarizer
from .acceptance import find_refusal
from .retention import find_lost
from .templates import Templates
from .timeout import await_with_timeout, call_with_timeout, check_timeout, close_with
from .transcript import split_messages

__all__ = ["TIMEOUT", "ModelSummarizer", "model_summarizer"]

TIMEOUT = 120.0
"""Seconds for a summary, all its requests together."""
_UNKNOWN_WINDOW = 32_000
"""Tokens of a window that is not known."""
_CHARACTERS = 3
"""Characters of a token, a low estimate: code and other alphabets have fewer than the usual four."""
_ANSWER = 8_192
"""Tokens kept free for the answer, or a quarter of the window if that is less."""
_RETRIES = 2
"""How often a request that was too long is halved."""
_LEAST = 2_000
"""Characters of the smallest part that is sent."""
_UNFINISHED = {
    "length": "its answer was cut off, because it was as long as it may be",
    "refusal": "it refused to answer",
    "filtered": "a filter of the provider cut its answer off",
}
"""Why a reply is no summary, by how it ended."""
_Steps = Generator[Mapping[str, Any], object, Summary]
"""A generator that yields bodies, receives responses and returns the summary."""


def model_summarizer(
    model: Model,
    format: Format,
    *,
    prompts: Mapping[str, str] | str | Path | None = None,
    window: int | None = None,
    timeout: float | None = TIMEOUT,
) -> Summarizer:
    """Return a summarizer that asks a model; it is awaitable if the model is.

    `format`: the format of the model's requests, used by this summarizer alone. `prompts`: a folder of `.md` files, or
    a mapping of names to texts; they replace the shipped prompts of the same names, or add to them.
    `window`: the model's window in tokens; default: the known one, else 32,000. The messages are made to fit it: long
    results become digests, then the history is split into at most six parts, and their summaries are summarised
    together. A further attempt, and one after a refusal for length, reads half as much. If the summary leaves out a
    statement that binds, one short request names what is missing. `timeout`: seconds for all requests together, or
    None.

    Raises the errors of the model, TimeoutError, and BadSetting for a format that is not the model's and other values
    that are not allowed.
    """
    if not callable(getattr(model, "complete", None)):
        raise BadSetting(f"model_summarizer takes a Model with the method complete(body), not {type(model).__name__}.")
    if not callable(getattr(format, "parse_reply", None)):
        raise BadSetting(f"format= must be a Format, such as get_format({model.format!r}), not {format!r:.60}.")
    if format.name.removesuffix("_chat") != model.format.removesuffix("_chat"):
        raise BadSetting(f"{model.name} takes the format {model.format!r}, not {format.name!r}.")
    if window is not None and (type(window) is not int or window < 1_000):
        raise BadSetting(f"Window must be a whole number of at least 1,000 tokens, not {window!r}.")
    check_timeout(timeout)
    return ModelSummarizer(model, format, Templates(prompts), window, timeout)


class ModelSummarizer:
    """A summarizer that asks a model. Safe to use from several threads."""

    def __init__(
        self,
        model: Model,
        format: Format,
        templates: Templates,
        window: int | None = None,
        timeout: float | None = TIMEOUT,
    ) -> None:
        self.name = model.name
        self._model, self._format, self._templates, self._timeout = model, format, templates, timeout
        known = window_of(model.name.partition(":")[2] or model.name)
        self._window = window or known or _UNKNOWN_WINDOW
        self._lock = threading.Lock()  # A format remembers its newest view.

    def cache_key(self, request: SummaryRequest) -> str:
        """Return the key under which `cached` keeps the answer. It depends on the text of the prompt."""
        return request.key + self._templates.key_for(request)

    def __call__(self, request: SummaryRequest) -> Any:
        deadline = None if self._timeout is None else time.monotonic() + self._timeout
        steps = self._steps(request)
        answer: object = None
        error: Exception | None = None
        while True:
            try:
                body = next(steps) if answer is None and error is None else _resumed(steps, answer, error)
            except StopIteration as done:
                return done.value
            error = None
            try:
                answer = call_with_timeout(partial(self._model.complete, body), _left(deadline), self._timeout)
            except Exception as raised:  # The generator handles a refusal for length.
                error = raised
                continue
            if inspect.isawaitable(answer):
                return close_with(self._later(steps, answer, deadline), answer)

    async def _later(self, steps: _Steps, first: Any, deadline: float | None) -> Summary:
        waiting = first
        while True:
            answer: object = None
            error: Exception | None = None
            try:
                answer = await await_with_timeout(waiting, _left(deadline), self._timeout)
            except Exception as raised:
                error = raised
            try:
                waiting = self._sent(_resumed(steps, answer, error))
            except StopIteration as done:
                summary: Summary = done.value
                return summary

    async def _sent(self, body: Mapping[str, Any]) -> object:
        answer = self._model.complete(body)
        return await answer if inspect.isawaitable(answer) else answer

    def _steps(self, request: SummaryRequest) -> _Steps:
        room = self._room(request)
        attempt = request.task.attempt if request.task else 1
        room //= 1 << min(attempt - 1, 4)  # The failed attempt may have read too much.
        for retry in range(_RETRIES + 1):
            try:
                return (yield from self._summarize(request, max(_LEAST, room)))
            except Exception as error:
                if retry == _RETRIES or room <= _LEAST or not _is_length_error(error):
                    raise
                parts = split_messages(request.messages, max(_LEAST, room))
                # Half of the size that failed, not of the allowed size.
                room = min(room, max(map(len, parts), default=0)) // 2
        raise AssertionError("a retry either returns or raises")

    def _summarize(self, request: SummaryRequest, room: int) -> _Steps:
        parts = split_messages(request.messages, room)
        if len(parts) > 1:
            summaries = []
            target = max(_LEAST // 4, min(request.target, room // (2 * len(parts))))
            for number, part in enumerate(parts, 1):
                required = tuple(value for value in request.required if value in part)
                binding = tuple(value for value in request.binding if value in part)
                values = tuple(value for value in request.values if value in part)
                asked = replace(request, previous="", target=target, required=required, binding=binding, values=values)
                note = f"It has {len(parts)} parts. This is part {number}; sum up this part alone."
                written = yield from self._ask(asked, part, note)
                summaries.append(f"--- part {number} of {len(parts)}\n{written[: 2 * target]}")
            note = f"It was summed up in {len(parts)} parts, which follow in order. Make one summary of them."
            text = "\n\n".join(summaries)
        else:
            note, text = "", parts[0] if parts else ""
        written = yield from self._ask(request, text, note)
        return Summary((yield from self._repaired(request, written)), self.name)

    def _repaired(self, request: SummaryRequest, written: str) -> Generator[Mapping[str, Any], object, str]:
        """Ask once to add the binding statements that a summary leaves out. The request holds the summary alone."""
        lost = find_lost(request.binding, written)
        if not lost or find_refusal(written):
            return written
        missing = [
            *lost,
            *find_lost(request.values, written),
            *(name for name in request.required if name not in written),
        ]
        response = yield self._body(user(self._templates.fill_repair(request, written, missing)))
        try:
            repaired = self._read_reply(response)
        except NoSummary:
            return written
        is_better = len(find_lost(request.binding, repaired)) < len(lost) and not find_refusal(repaired)
        return repaired if is_better else written

    def _ask(self, request: SummaryRequest, text: str, note: str) -> Generator[Mapping[str, Any], object, str]:
        message = user(self._templates.fill(request, text, part=note))
        return self._read_reply((yield self._body(message)))

    def _read_reply(self, response: object) -> str:
        """Return the text of a whole reply. Raises NoSummary for one that was cut off or refused."""
        reply, _ = self._format.parse_reply(response)
        stop = self._format.stop_of(response)
        if stop is not None and stop.kind in _UNFINISHED:
            raise NoSummary([f"{self.name}: {_UNFINISHED[stop.kind]}"])
        return _read(reply.text)

    def _body(self, message: Message) -> Mapping[str, Any]:
        """Return the body with this message, without cache marks, since it is sent only once."""
        entry = Entry(1, "", message, message, Stamp(0, 0, 0, "user"))
        view = View((entry,), 1, Budget(self._window, 0, 10**12, 0))
        with self._lock:
            body = self._format.body(view, profile=profile_for(self._format.name), system=self._templates.system())
        decoded: dict[str, Any] = msgspec.json.decode(body)
        return decoded

    def _room(self, request: SummaryRequest) -> int:
        """Return the characters of the conversation that one request may hold."""
        answer = min(_ANSWER, self._window // 4)
        fixed = len(self._templates.system()) + len(self._templates.fill(request, ""))
        return max(_LEAST, (self._window - answer) * _CHARACTERS - fixed)


def _resumed(steps: _Steps, answer: object, error: Exception | None) -> Mapping[str, Any]:
    return steps.send(answer) if error is None else steps.throw(error)


def _left(deadline: float | None) -> float | None:
    """Return the remaining seconds, at least a few milliseconds, so that a finished answer is accepted."""
    return None if deadline is None else max(0.01, deadline - time.monotonic())


def _is_length_error(error: Exception) -> bool:
    return is_too_long(f"{error} {getattr(error, 'body', '')}", getattr(error, "status_code", None))


def _read(text: str) -> str:
    """Return the summary in an answer, also if text surrounds the requested JSON."""
    plain = read_answer(text)
    if plain != text.strip() or '"summary"' not in plain:
        return plain
    decoder = json.JSONDecoder(strict=False)
    for start in (match.start() for match in re.finditer(r"\{\s*\"", plain)):
        try:
            value, _ = decoder.raw_decode(plain, start)
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict) and isinstance(value.get("summary"), str):
            return replace_surrogates(str(value["summary"])).strip()
    return plain
