"""Summaries by a model: a request is rendered, sent, and read; what does not fit is told in parts.

Knows the port `Model` and the format that is handed in, no SDK and no provider. The same steps serve models that are
called and those that are awaited. Whether what a model wrote can be used is judged in `acceptance.py`.
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

from ..core.messages import Message, user
from ..core.profiles import profile_for, window_of
from ..core.stamps import Stamp
from ..core.summaries import Summary, SummaryRequest, read_answer, replace_surrogates
from ..core.view import Budget, Entry, View
from ..errors import BadSetting
from ..ports import Format, Model, Summarizer
from .templates import Templates
from .timeout import awaited, bounded, check_timeout, tied
from .transcript import parts_of

__all__ = ["TIMEOUT", "model_summarizer"]

TIMEOUT = 120.0
"""Seconds for a whole summary, all its requests together."""
_UNKNOWN_WINDOW = 32_000
"""Tokens that a model is taken to have whose window nobody knows."""
_CHARACTERS = 3
"""Characters a token, to be on the safe side: code and other alphabets have fewer than the usual four."""
_ANSWER = 8_192
"""Tokens kept free for the answer, or a quarter of the window where that is less."""
_RETRIES = 2
"""How often a request that was too long is made half as large."""
_LEAST = 2_000
"""Characters of the smallest part that is worth a request."""
_TOO_LONG = re.compile(
    r"too (?:long|large)|too many (?:\w+ )?tokens|(?:context|prompt).{0,10}(?:length|window|size|limit)"
    r"|maximum.{0,20}tokens|(?:input|prompt) tokens exceed",
    re.IGNORECASE,
)
_Steps = Generator[Mapping[str, Any], object, Summary]
"""Yields bodies, receives responses, returns the summary."""


def model_summarizer(
    model: Model,
    format: Format,
    *,
    prompts: Mapping[str, str] | str | Path | None = None,
    window: int | None = None,
    timeout: float | None = TIMEOUT,
) -> Summarizer:
    """A summarizer that lets a model write. To be awaited if the model is.

    `format`: the one that the model's requests are written in, for this summarizer alone. `prompts`: a folder of `.md`
    files, or a mapping of names to texts, that take the place of the shipped ones of the same name, or add to them (see
    `Templates`). `window`: of the model in tokens; by default the one that is known, else 32,000. What is to be
    summarised is made to fit it: long results become digests, then it is told in at most six parts, whose summaries are
    summed up together. A further attempt, and one after a refusal for its length, is given half as much to read.
    `timeout`: seconds for all of it, None for as long as it takes.

    Raises what the model raises, and TimeoutError; BadSetting for a format that is not the model's, and other values
    that make no sense.
    """
    if not callable(getattr(model, "complete", None)):
        raise BadSetting(f"model_summarizer takes a Model, which has complete(body), not {type(model).__name__}.")
    if format.name.removesuffix("_chat") != model.format.removesuffix("_chat"):
        raise BadSetting(f"{model.name} takes the format {model.format!r}, not {format.name!r}.")
    if window is not None and (type(window) is not int or window < 1_000):
        raise BadSetting(f"window= is a whole number of tokens, 1,000 or more, not {window!r}.")
    check_timeout(timeout)
    return _ByModel(model, format, Templates(prompts), window, timeout)


class _ByModel:
    """See `model_summarizer`. May be used from several threads."""

    def __init__(
        self, model: Model, format: Format, templates: Templates, window: int | None, timeout: float | None
    ) -> None:
        self.name = model.name
        self._model, self._format, self._templates, self._timeout = model, format, templates, timeout
        known = window_of(model.name.partition(":")[2] or model.name)
        self._window = window or known or _UNKNOWN_WINDOW
        self._lock = threading.Lock()  # A format remembers how it wrote its newest view.

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
                answer = bounded(partial(self._model.complete, body), _left(deadline), self._timeout)
            except Exception as raised:  # The steps know what a refusal for length leads to.
                error = raised
                continue
            if inspect.isawaitable(answer):
                return tied(self._later(steps, answer, deadline), answer)

    async def _later(self, steps: _Steps, first: Any, deadline: float | None) -> Summary:
        waiting = first
        while True:
            answer: object = None
            error: Exception | None = None
            try:
                answer = await awaited(waiting, _left(deadline), self._timeout)
            except Exception as raised:
                error = raised
            try:
                waiting = self._sent(_resumed(steps, answer, error))
            except StopIteration as done:
                return done.value  # type: ignore[no-any-return]

    async def _sent(self, body: Mapping[str, Any]) -> object:
        answer = self._model.complete(body)
        return await answer if inspect.isawaitable(answer) else answer

    def _steps(self, request: SummaryRequest) -> _Steps:
        room = self._room(request)
        attempt = request.task.attempt if request.task else 1
        room //= 1 << min(attempt - 1, 4)  # What failed may have been too much.
        for retry in range(_RETRIES + 1):
            try:
                return (yield from self._summed_up(request, max(_LEAST, room)))
            except Exception as error:
                if retry == _RETRIES or room <= _LEAST or not _is_too_long(error):
                    raise
                parts = parts_of(request.messages, max(_LEAST, room))
                room = min(room, max(map(len, parts), default=0)) // 2  # Half of what failed, not of what was allowed.
        raise AssertionError("a retry either returns or raises")

    def _summed_up(self, request: SummaryRequest, room: int) -> _Steps:
        parts = parts_of(request.messages, room)
        if len(parts) > 1:
            told = []
            target = max(_LEAST // 4, min(request.target, room // (2 * len(parts))))
            for number, part in enumerate(parts, 1):
                required = tuple(value for value in request.required if value in part)
                asked = replace(request, previous="", target=target, required=required)
                note = f"It is told in {len(parts)} parts. This is part {number}; sum up this part alone."
                written = yield from self._asked(asked, part, note)
                told.append(f"--- part {number} of {len(parts)}\n{written[: 2 * target]}")
            note = f"It was summed up in {len(parts)} parts, which follow in order. Make one summary of them."
            text = "\n\n".join(told)
        else:
            note, text = "", parts[0] if parts else ""
        written = yield from self._asked(request, text, note)
        return Summary(written, self.name)

    def _asked(self, request: SummaryRequest, text: str, note: str) -> Generator[Mapping[str, Any], object, str]:
        said = user(self._templates.filled(request, text, part=note))
        response = yield self._body(said)
        message, _ = self._format.parse_reply(response)
        return _read(message.text)

    def _body(self, said: Message) -> Mapping[str, Any]:
        """The request that says this: without cache marks, since nothing of it is sent twice."""
        entry = Entry(1, "", said, said, Stamp(0, 0, 0, "user"))
        view = View((entry,), 1, Budget(self._window, 0, 10**12, 0))
        with self._lock:
            body = self._format.body(view, profile=profile_for(self._format.name), system=self._templates.system())
        decoded: dict[str, Any] = msgspec.json.decode(body)
        return decoded

    def _room(self, request: SummaryRequest) -> int:
        """Characters of the conversation that one request may hold."""
        answer = min(_ANSWER, self._window // 4)
        beside = len(self._templates.system()) + len(self._templates.filled(request, ""))
        return max(_LEAST, (self._window - answer) * _CHARACTERS - beside)


def _resumed(steps: _Steps, answer: object, error: Exception | None) -> Mapping[str, Any]:
    return steps.send(answer) if error is None else steps.throw(error)


def _left(deadline: float | None) -> float | None:
    """Seconds that are left; at least some, so that what is there already is taken."""
    return None if deadline is None else max(0.01, deadline - time.monotonic())


def _is_too_long(error: Exception) -> bool:
    if getattr(error, "status_code", None) == 413:
        return True
    return bool(_TOO_LONG.search(f"{error} {getattr(error, 'body', '')}"))


def _read(text: str) -> str:
    """The summary in what a model wrote, also where it says something before or behind the JSON that was asked for."""
    plain = read_answer(text)
    if plain != text.strip() or '"summary"' not in plain:
        return plain
    decoder = json.JSONDecoder(strict=False)
    for start in (found.start() for found in re.finditer(r"\{\s*\"", plain)):
        try:
            said, _ = decoder.raw_decode(plain, start)
        except (ValueError, RecursionError):
            continue
        if isinstance(said, dict) and isinstance(said.get("summary"), str):
            return replace_surrogates(str(said["summary"])).strip()
    return plain
