"""What a policy asks a model for, and what comes back. Asking is the shell's work; nothing here waits.

A policy that needs a summary yields `NeedsSummary` in the place of the edits it cannot make yet. Once the answer is
there, it is asked again for the same view, and `then` turns the answer, or the failure, into edits. So a policy stays
a function of a view, and what it does without a model is decided by itself.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from hashlib import blake2b
from typing import Any, Literal

import msgspec
from msgspec import Struct

from .edits import Edit, Task
from .messages import Message

__all__ = ["Answer", "NeedsSummary", "Summary", "SummaryRequest", "When", "read_answer", "replace_surrogates"]

When = Literal["now", "soon", "ahead"]
"""How long an answer may take. `now`: the plan waits for it; `soon`: it is wanted now, but nothing waits for it as long
as the view fits without it; `ahead`: it is only coming, and the edits are not to be made before the policy asks again.

A conversation without a background knows no difference between `now` and `soon`, and does not ask what is `ahead`.
"""


class SummaryRequest(Struct, frozen=True):
    """What a summarizer is asked to write."""

    policy: str
    messages: tuple[Message, ...]
    """What is to be summarised, as the model saw it, oldest first."""
    target: int
    """Characters the answer should have at most."""
    previous: str = ""
    """The summary that this one takes the place of, and must carry on; "" where there is none."""
    prompt: str = ""
    """Name of the prompt to use; "" for the summarizer's own."""
    facts: Mapping[str, Any] = {}
    """What else a prompt may name: plain JSON values."""
    task: Task | None = None
    """Written to the journal before a model is asked, so that the attempt counts; None: it need not be counted."""
    required: tuple[str, ...] = ()
    """What the answer must hold word for word, such as identifiers that are still referred to."""
    focus: str = ""
    """What whoever asked for it wants it to dwell on; "" for nothing in particular."""
    by_code: bool = False
    """Whether it is to be written without a model, since the summarizer that was asked did not do."""

    @property
    def key(self) -> str:
        """The same for the same question, whichever attempt it is."""
        question = msgspec.json.encode(msgspec.structs.replace(self, task=None))
        return blake2b(question, digest_size=20, person=b"foveate ask 1").hexdigest()


class Summary(Struct, frozen=True):
    """What a summarizer may return in place of a plain text: who wrote it, and who was asked in vain before."""

    text: str
    by: str = ""
    """Who wrote it, for example `digest` or `anthropic:claude-haiku-4-5`."""
    refused: tuple[str, ...] = ()
    """Why those who were asked before did not do, each as `who: why`."""


class Answer(Struct, frozen=True):
    """What became of a request: a text, or the reason why there is none."""

    text: str = ""
    error: str = ""
    by: str = ""
    """Who wrote the text, where that is known; the edits made of it carry it on."""
    refused: tuple[str, ...] = ()
    """Why those who were asked before did not do."""


class NeedsSummary(Struct, frozen=True):
    """A question in the place of edits. `then` is called with the answer and returns the edits to make, or what else it
    has to ask.
    """

    request: SummaryRequest
    then: Callable[[Answer], Iterable[Edit | NeedsSummary]]
    when: When = "now"


def read_answer(text: str) -> str:
    """The summary in what a model wrote: plain text, or a JSON object with a string `summary`, fenced or not.

    Halves of surrogate pairs, which a model may well escape and nobody can store or send, are replaced.

    >>> read_answer('{"summary": "All is well."}')
    'All is well.'
    """
    plain = replace_surrogates(text).strip()
    body = plain
    if body.startswith("```") and body.endswith("```") and "\n" in body:
        body = body[body.index("\n") : -3].strip()
    if body.startswith("{"):
        try:
            said = json.loads(body, strict=False)  # Models break lines inside of strings.
        except (ValueError, RecursionError):
            return plain
        if isinstance(said, dict) and isinstance(said.get("summary"), str):
            return replace_surrogates(str(said["summary"])).strip()
    return plain


def replace_surrogates(text: str) -> str:
    """The text with a replacement character for each half of a surrogate pair."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text
