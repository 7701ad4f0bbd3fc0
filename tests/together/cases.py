"""Random conversations under random policies and edits, with a check of every request body.

A seed fixes everything: the messages, the policy, the window, the edits, the formats and the models. So a refused body
is reproduced by its seed. `test_cases.py` runs some thousand bodies, and `bench/legality.py` a million.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from random import Random
from typing import Any, NamedTuple

import msgspec

from foveate import Conversation, Message, Options, Policy, open_conversation
from foveate.core.checker import check
from foveate.errors import BadEdit, BadInput, CompactionFailed, DoesNotFit, FoveateError
from foveate.stores.memory import MemoryStore
from foveate.testing.bodies import check_body
from foveate.testing.moves import MOVES, NOWHERE, edit_of, history_of, run_of

from .mechanisms import MECHANISMS, summarizer

MODELS = {
    "anthropic": ("", "claude-haiku-4-5", "claude-opus-5-5"),
    "openai": ("", "gpt-5.4", "gpt-4o"),
    "openai_responses": ("", "gpt-5.4", "gpt-6"),
    "gemini": ("", "gemini-2.5-flash", "gemini-3.1-pro-preview", "gemini-4-pro"),
}
"""Models of each format: unknown, older, newer. A change of format and model opens the conversation again."""
PRESETS = ("none", "balanced", "frugal", "coding", "keep-last-1", "prune-and-compact", "recap", "expire")
WINDOWS = (100_000, 100_000, 6_000, 2_000)
TOOLS = {
    "anthropic": [{"name": "read_file", "input_schema": {"type": "object"}}],
    "openai": [{"type": "function", "function": {"name": "read_file", "parameters": {"type": "object"}}}],
    "openai_responses": [{"type": "function", "name": "read_file", "parameters": {"type": "object"}}],
    "gemini": [{"functionDeclarations": [{"name": "read_file"}]}, {"googleSearch": {}}],
}


class Refused(NamedTuple):
    """A body that a checker refuses."""

    seed: int
    body: int
    """Number of the body in its case, from 1."""
    format: str
    model: str
    policy: str
    problem: str


class Outcome(NamedTuple):
    """What one case found."""

    bodies: int
    """Bodies that were checked."""
    without: int
    """Requests for which there was nothing to send, or nothing that fits."""
    refused: list[Refused]
    formats: Counter[str]
    """Bodies of each format."""


class Case:
    """One random conversation."""

    def __init__(self, seed: int, formats: Sequence[str] = tuple(MODELS), policies: Sequence[str] = ()) -> None:
        self.seed, self.random = seed, Random(seed)
        self.formats = formats
        self.store = MemoryStore()
        self.policy_name = self.random.choice(policies or (*PRESETS, *MECHANISMS, "several"))
        self.policy = self._policy()
        self.window = self.random.choice(WINDOWS)
        self.time = 0
        self.bodies = self.without = 0
        self.refused: list[Refused] = []
        self.checked: Counter[str] = Counter()
        self.chat = self._open()

    def run(self) -> Outcome:
        """Append the messages one by one, change the view in between, and check the bodies."""
        for message in self._history():
            try:
                self.chat.append(message)
            except BadInput:  # Some moves make messages that no history takes.
                continue
            self._change()
            if self.random.random() < 0.5:
                self._check_body()
        self._check_body()
        return Outcome(self.bodies, self.without, self.refused, self.checked)

    def _history(self) -> list[Message]:
        number = self.random.randrange
        moves = [(number(len(MOVES)), number(16), number(16)) for _ in range(number(4, 40))]
        return history_of(moves) if self.random.random() < 0.7 else run_of([(a % 4, b, c) for a, b, c in moves])

    def _policy(self) -> str | tuple[Policy, ...]:
        if self.policy_name == "several":
            names = self.random.sample(sorted(MECHANISMS), self.random.randint(2, 5))
            return tuple(MECHANISMS[name]() for name in names)
        return (MECHANISMS[self.policy_name](),) if self.policy_name in MECHANISMS else self.policy_name

    def _open(self) -> Conversation:
        self.format = self.random.choice(list(self.formats))
        self.model = self.random.choice(MODELS[self.format])
        self.tools = TOOLS[self.format] if self.random.random() < 0.5 else []
        return open_conversation(
            "c",
            store=self.store,
            format=self.format,
            model=self.model or None,
            window=self.window,
            policy=self.policy,
            summarizer=summarizer,
            expand=self.random.choice((None, True, False)),
            options=Options(clock=self._clock, background=False),
        )

    def _clock(self) -> int:
        self.time += 1
        return self.time

    def _change(self) -> None:
        """Sometimes change the view, or open the conversation with another format and model."""
        drawn = self.random.random()
        if drawn < 0.04:
            self.chat.close()
            self.chat = self._open()
        elif drawn < 0.2:
            with suppress(FoveateError, BadInput):
                self._act(self.random.randrange(8))

    def _act(self, number: int) -> None:
        chat, position = self.chat, self.random.randint(1, max(1, len(self.chat)))
        match number:
            case 0 | 1 | 2:
                ids = [*(row.id for row in chat.history()), *NOWHERE]
                draw = self.random.randrange
                with suppress(BadEdit):
                    chat.edit(edit_of(ids, draw(10), draw(len(ids)), draw(len(ids)), draw(72)))
            case 3:
                chat.expand(f"m{position}")
            case 4:
                chat.pin(f"m{position}")
            case 5:
                chat.undo()
            case 6:
                chat.compact()
            case _:
                chat.privacy.erase(f"m{position}")

    def _with_model(self, body: bytes, model: str) -> bytes:
        """Return the body with the model, which Gemini takes in the address and not in the body."""
        if self.format != "gemini":
            return body
        return b'{"model":' + msgspec.json.encode(model) + b"," + body[1:]

    def _request(self) -> dict[str, Any]:
        """Sometimes name another model, or another window, for one request."""
        models = [name for name in MODELS[self.format] if name]
        request: dict[str, Any] = {}
        if self.random.random() < 0.3:
            request["model"] = self.random.choice(models)
        if "model" in request or self.random.random() < 0.1:
            request["window"] = self.random.choice(WINDOWS)
        return request

    def _check_body(self) -> None:
        try:
            request = self._request()
            view = self.chat.prepare(tools=self.tools, **request)
            body = self.chat.body(tools=self.tools, **request)
        except (BadInput, DoesNotFit, CompactionFailed):
            self.without += 1
            return
        self.bodies += 1
        self.checked[self.format] += 1
        problems = [str(violation) for violation in check(view, self.chat._agent.profile)]
        problems += [str(refusal) for refusal in check_body(self.format, self._with_model(body, view.call.model))]
        if self.format == "openai_responses":  # Legal without storage too.
            problems += [str(refusal) for refusal in check_body(self.format, b'{"store":false,' + body[1:])]
        if view.tokens > view.budget.usable:
            problems.append(f"{view.tokens} tokens, but {view.budget.usable} fit")
        for problem in problems:
            self.refused.append(Refused(self.seed, self.bodies, self.format, self.model, self.policy_name, problem))
