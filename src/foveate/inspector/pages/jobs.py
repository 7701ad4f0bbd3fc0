"""Routes of background jobs: their progress, for a script that asks now and then, and cancelling."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from ..jobs import Job, Jobs, Progress
from .base import form, in_thread, tenant_of

__all__ = ["routes", "started"]

_PATIENCE = 0.4
"""Seconds to wait for a job before a page shows its progress, so that a short one needs no second request."""


def routes() -> list[BaseRoute]:
    """Return the routes of jobs."""
    return [
        Route("/jobs/{id}", show_job, name="job"),
        Route("/jobs/{id}/cancel", cancel_job, methods=["POST"], name="job_cancel"),
    ]


async def started(
    request: Request, key: Hashable, run: Callable[[Progress], Any], *, patience: float = _PATIENCE
) -> Job:
    """Return the job with this key, after at most `patience` seconds in which a short one ends."""
    jobs: Jobs = request.app.state.jobs
    job = jobs.start(tenant_of(request), key, run, again=request.query_params.get("again", ""))
    await in_thread(job.wait, patience)
    return job


async def show_job(request: Request) -> Response:
    """Return how far a job is."""
    job = _job_of(request)
    return JSONResponse({"status": job.status, "done": job.done, "total": job.total})


async def cancel_job(request: Request) -> Response:
    """Cancel a job, and go back to its page."""
    fields = await form(request, changes=False)
    _job_of(request).cancel()
    back = fields.get("back", "")
    # Only a path of this inspector: `//name` would be another server.
    is_own = back.startswith("/") and not back.startswith(("//", "/\\"))
    return RedirectResponse(back if is_own else request.scope.get("root_path", "") + "/", 303)


def _job_of(request: Request) -> Job:
    jobs: Jobs = request.app.state.jobs
    job = jobs.find(tenant_of(request), request.path_params["id"])
    if job is None:
        raise HTTPException(404, "This job is no longer known. Reload the page that started it.")
    return job
