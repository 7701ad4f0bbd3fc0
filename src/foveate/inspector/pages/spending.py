"""The page on spending: what makes a session expensive, and what a preset would have saved."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import Struct
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from ...conversation import Conversation
from ...errors import BadSetting
from ...open import cost_of
from ..jobs import Job, Progress
from ..views.spending import SPENDING_NAMES, Spending, spending_of_conversation
from ..views.trials import SUGGESTED, Trial, check_policy, policy_choices, recording_of, try_policy, window_of
from .base import in_thread, link, number, opened, page, source_of
from .jobs import started

__all__ = ["Subject", "policies_in", "routes", "subject_of", "trial_of"]

_TRIALS_MAX = 4
"""Policies that one page tries."""


class Subject(Struct, frozen=True):
    """The conversation of a page, and its state: what a result depends on."""

    source: str
    """Key of its source."""
    name: str
    """Its name."""
    state: tuple[str, int, int]
    """Its newest message, edit and erasure."""
    window: int
    """Its window in tokens."""
    provider: str
    """Its wire format."""
    turns: int
    """Number of the newest model call."""


def routes() -> list[BaseRoute]:
    """Return the route of the page."""
    return [Route("/c/{source}/{name:name}/spending", show_spending, name="spending")]


async def show_spending(request: Request) -> Response:
    """Show the cost by kind of content and by result, and try some policies."""
    subject = await in_thread(subject_of, request)
    names = policies_in(request, SUGGESTED)
    window = number(request, "window", subject.window, least=1_000, most=10_000_000)

    def spend(progress: Progress) -> Spending:
        with opened(request) as chat:
            return spending_of_conversation(chat, prices=_prices(chat), cost_of=cost_of, progress=progress)

    job = await started(request, ("spending", subject), spend)
    trials = [(name, await trial_of(request, subject, name, window)) for name in names]
    return page(
        request,
        "spending.html.j2",
        title=f"Spending of {subject.name}",
        subject=subject,
        source=source_of(request),
        job=job,
        spending=job.result,
        names=SPENDING_NAMES,
        trials=trials,
        chosen=names,
        choices=policy_choices(),
        window=window,
        here=link(
            request,
            "spending",
            source=subject.source,
            name=subject.name,
            policies=request.query_params.get("policies", ""),
            window=request.query_params.get("window", ""),
        ),
    )


def policies_in(request: Request, default: Sequence[str]) -> list[str]:
    """Return the policies in the query, each once. Raises HTTPException 400 for an unknown one."""
    text = ",".join(request.query_params.getlist("policies"))
    names = list(dict.fromkeys(name.strip() for name in text.split(",") if name.strip())) or list(default)
    try:
        return [check_policy(name) for name in names[:_TRIALS_MAX]]
    except BadSetting as error:
        raise HTTPException(400, str(error)) from error


def subject_of(request: Request) -> Subject:
    """Return the conversation that a request names, as it is now. Blocks: call it in a thread."""
    with opened(request) as chat:
        head = chat._agent.head
        return Subject(
            request.path_params["source"],
            request.path_params["name"],
            (head.tip, head.number, head.erased),
            window_of(chat),
            chat.format.name,
            chat.view.turn - 1,
        )


async def trial_of(request: Request, subject: Subject, policy: str, window: int, *, patience: float = 0.05) -> Job:
    """Return the job that replays a conversation under a policy. Its result is a Trial."""

    def run(progress: Progress) -> Trial:
        with opened(request) as chat:
            recording, prices = recording_of(chat), _prices(chat)
        return try_policy(recording, policy, window=window, provider=subject.provider, prices=prices, progress=progress)

    return await started(request, ("trial", subject, policy, window), run, patience=patience)


def _prices(chat: Conversation) -> Any:
    """Return the prices that the conversation's plans use."""
    return chat.view.call.prices
