"""Jobs: background work with progress and cancelling."""

from __future__ import annotations

import threading

from foveate.errors import BadInput
from foveate.inspector.jobs import Jobs


def test_job_with_the_same_key_runs_once():
    jobs, runs = Jobs(), []

    def run(progress):
        progress(1, 2)
        runs.append(1)
        return "result"

    first = jobs.start("", "key", run)
    assert first.wait(10)
    assert (first.status, first.result, first.done, first.total) == ("done", "result", 1, 2)
    assert jobs.start("", "key", run) is first
    assert jobs.start("other tenant", "key", run) is not first
    assert runs[0] == 1


def test_cancelling_stops_a_running_job_at_its_next_step():
    jobs, begun, go = Jobs(), threading.Event(), threading.Event()

    def run(progress):
        progress(0, 10)
        begun.set()
        go.wait(10)
        progress(1, 10)
        raise AssertionError("the job went on")

    job = jobs.start("", "key", run)
    waiting = jobs.start("", "next", lambda progress: None)
    assert begun.wait(10)
    waiting.cancel()
    assert waiting.status == "cancelled"
    job.cancel()
    assert job.status == "running"
    go.set()
    assert job.wait(10)
    assert job.status == "cancelled"
    assert jobs.start("", "key", lambda progress: 1) is job
    again = jobs.start("", "key", lambda progress: 1, again=job.id)
    assert again is not job
    assert jobs.start("", "key", lambda progress: 1, again=job.id) is again
    assert again.wait(10)
    assert again.status == "done"


def test_failed_job_says_why_and_later_jobs_run():
    jobs = Jobs()

    def fail(progress):
        raise BadInput("The window is too small.")

    def break_down(progress):
        raise ZeroDivisionError("by zero")

    first, second, third = (jobs.start("", run, run) for run in (fail, break_down, lambda progress: 3))
    assert all(job.wait(10) for job in (first, second, third))
    assert (first.status, first.error) == ("failed", "The window is too small.")
    assert (second.status, second.error) == ("failed", "ZeroDivisionError: by zero")
    assert third.result == 3


def test_job_is_found_by_its_owner_only():
    jobs = Jobs()
    job = jobs.start("a", "key", lambda progress: None)
    assert jobs.find("a", job.id) is job
    assert jobs.find("b", job.id) is None
    assert jobs.find("a", "other") is None


def test_old_jobs_leave_the_memory():
    jobs = Jobs()
    started = [jobs.start("", number, lambda progress: bytes(10)) for number in range(60)]
    assert all(job.wait(10) for job in started)
    jobs.start("", "one more", lambda progress: None).wait(10)
    assert jobs.find("", started[0].id) is None
    assert sum(jobs.find("", job.id) is not None for job in started) <= 17
