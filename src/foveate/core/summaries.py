"""Summary requests of policies, and the answers to them.

A policy that needs a summary yields `NeedsSummary` in place of the edits it cannot make yet. The conversation gets the
answer and calls the policy again for the same view. Then `then` turns the answer, or the failure, into edits. So a
policy stays a function of a view, and decides itself what to do without a model.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from hashlib import blake2b
from typing import Any, Literal

import msgspec
from msgspec import Struct

from ..errors import BadInput
from .edits import Edit, Task
from .messages import Message

__all__ = [
    "Answer",
    "NeedsSummary",
    "Summary",
    "SummaryRequest",
    "Urgency",
    "not_text",
    "read_answer",
    "replace_surrogates",
]

Urgency = Literal["now", "soon", "ahead"]
"""How long an answer may take. `now`: the plan waits for it. `soon`: needed now, but the plan waits only if the view
does not fit without it. `ahead`: needed later; the policy requests it again before its edits are made.

A conversation without background work treats `soon` like `now` and ignores `ahead`.
"""


_ENCODED = 1_000
"""Messages that are encoded at once for a key: those of a long history take as much memory as their texts."""


class SummaryRequest(Struct, frozen=True):
    """A request for one summary."""

    policy: str
    """The policy that needs the summary."""
    messages: tuple[Message, ...]
    """The messages to summarize, as the model saw them, oldest first, and so few and short that they fit a window. If
    the oldest are left out, a note with their digest comes first.
    """
    target: int
    """Maximum length of the answer in characters."""
    previous: str = ""
    """The summary that this one replaces and must continue; "" for none."""
    prompt: str = ""
    """Name of the prompt to use; "" for the summarizer's own."""
    facts: Mapping[str, Any] = {}
    """Further values for the prompt: plain JSON values."""
    task: Task | None = None
    """The task to commit before the summarizer is called, so that the attempt counts; None: it does not count."""
    required: tuple[str, ...] = ()
    """Texts that the answer must contain word for word, such as identifiers that are still in use."""
    binding: tuple[str, ...] = ()
    """Statements of the user that bind the model, such as prohibitions and limits. The answer must keep their sense:
    their names, their numbers and what they deny.
    """
    values: tuple[str, ...] = ()
    """Statements of the user whose values hold, such as ports, dates and names. The answer must keep their numbers and
    identifiers; those that it leaves out are added at its end, if there is room.
    """
    keeps_statements: bool = False
    """Whether the conversation sets `binding` and `values` when it calls a summarizer that has a model."""
    focus: str = ""
    """The topic that the summary should emphasize, if the caller of `compact` gave one; otherwise ""."""
    covered: tuple[Message, ...] = ()
    """All covered messages, whole, if `messages` had to be made smaller; otherwise ()."""
    by_code: bool = False
    """Whether to write it without a model, because the chosen summarizer failed."""
    conversation: str = ""
    """Name of the conversation. It and the next two are set when the summarizer is called."""
    tenant: str = ""
    """The owner of the conversation."""
    user: str = ""
    """The person for whom the program works, if it passed `user=` when opening."""

    @property
    def everything(self) -> tuple[Message, ...]:
        """Return all covered messages, whole. Summarizers without a model read these: they have no window."""
        return self.covered or self.messages

    @property
    def key(self) -> str:
        """Return a key of the request: equal for every attempt at the same request."""
        question = msgspec.json.encode(msgspec.structs.replace(self, task=None, messages=(), covered=()))
        key = blake2b(question, digest_size=20, person=b"foveate ask 2")
        for messages in (self.messages, self.covered):
            key.update(b"%d" % len(messages))
            for begin in range(0, len(messages), _ENCODED):
                key.update(msgspec.json.encode(messages[begin : begin + _ENCODED]))
        return key.hexdigest()


class Summary(Struct, frozen=True):
    """The result of a summarizer with its author, in place of a plain text."""

    text: str
    """The summary."""
    by: str = ""
    """The author, for example `digest` or `anthropic:claude-haiku-4-5`."""
    refused: tuple[str, ...] = ()
    """Why earlier summarizers failed, each as `name: reason`."""


class Answer(Struct, frozen=True):
    """The answer to a request: a text, or an error."""

    text: str = ""
    """The summary."""
    error: str = ""
    """The reason why there is none."""
    by: str = ""
    """The author of the text, if known. The edits made from it name the author."""
    refused: tuple[str, ...] = ()
    """Why earlier summarizers failed."""


class NeedsSummary(Struct, frozen=True):
    """A summary request in place of edits."""

    request: SummaryRequest
    """The request."""
    then: Callable[[Answer], Iterable[Edit | NeedsSummary]]
    """Returns the edits for the answer, or a further request."""
    when: Urgency = "now"
    """How long the answer may take."""

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the request without `then`, a function of the policy that made it."""
        return type(self), (self.request, _then_elsewhere, self.when)

    def __deepcopy__(self, memo: object) -> NeedsSummary:
        return self


def _then_elsewhere(answer: Answer) -> Iterable[Edit | NeedsSummary]:
    raise BadInput("A plan from another process cannot be continued with a summary. Plan again in the conversation.")


def read_answer(text: str) -> str:
    """Return the summary in a model's reply: plain text, or a JSON object with a string `summary`, fenced or not.

    Replaces halves of surrogate pairs. A model may escape them, but they cannot be stored or sent.

    >>> read_answer('{"summary": "All is well."}')
    'All is well.'
    """
    plain = replace_surrogates(text).strip()
    body = plain
    if body.startswith("```") and body.endswith("```") and "\n" in body:
        body = body[body.index("\n") : -3].strip()
    if body.startswith("{"):
        try:
            value = json.loads(body, strict=False)  # Models break lines inside strings.
        except (ValueError, RecursionError):
            return plain
        if isinstance(value, dict) and isinstance(value.get("summary"), str):
            return replace_surrogates(str(value["summary"])).strip()
    return plain


def not_text(answer: object) -> str:
    """Return the reason to refuse a summarizer's answer that is neither a text nor a Summary."""
    return f"returned {type(answer).__name__}, not text: return the summary itself as a str"


def replace_surrogates(text: str) -> str:
    """Return the text with a replacement character for each half of a surrogate pair."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text
