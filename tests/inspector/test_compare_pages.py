"""The pages that compare, and the routes of background jobs."""

from __future__ import annotations

import re
import threading

import pytest
from clients import client_of
from prepared import demo_messages, play

from foveate.inspector import Access, build_app
from foveate.inspector.jobs import Jobs
from foveate.open import open_store


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    """A store with the first part of the demo's session, as an agent with a small window had it."""
    path = f"sqlite:///{tmp_path_factory.mktemp('compare') / 'chats.db'}"
    play(path, "demo", demo_messages()[:120], window=20_000)
    return path


@pytest.fixture(scope="module")
def client(url):
    with open_store(url) as store, client_of(build_app(store)) as opened:
        yield opened


def finished(client, path):
    """Return a page after the jobs that it starts."""
    client.get(path)
    jobs: Jobs = client.app.state.jobs
    assert all(job.wait(60) for job in list(jobs._by_key.values()))
    return client.get(path)


def test_two_calls_stand_side_by_side(client):
    answer = client.get("/c/store/demo/compare?left=5&right=40")
    assert answer.status_code == 200
    assert '<th scope="col" class="figure">call 5</th>' in answer.text
    assert '<th scope="col" class="figure">call 40</th>' in answer.text
    assert "only right" in answer.text
    assert "m3-m" in answer.text  # A summary, next to the messages that it covers.


def test_filter_shows_rows_of_one_status_only(client):
    text = client.get("/c/store/demo/compare?left=5&right=40&show=right").text
    classes = set(re.findall(r'<li class="pair (s-\w+)"', text))
    assert classes == {"s-right"}


def test_rows_come_by_pages_and_stay_small(client):
    answer = finished(client, "/c/store/demo/compare?policies=off,none")
    assert len(answer.content) < 500_000
    rows = answer.text.count('<li class="pair')
    assert rows == 60
    second = client.get("/c/store/demo/compare?policies=off,none&from=60")
    assert 0 < second.text.count('<li class="pair') <= 60
    assert "m61" in second.text


def test_policies_are_compared_after_their_replay(client):
    answer = finished(client, "/c/store/demo/compare?policies=none,keep-last-3&window=50000")
    for word in ("none, call", "keep-last-3, call", "recall", "quoted", "all-in", "shrunk by keep-last-3"):
        assert word in answer.text
    stored = finished(client, "/c/store/demo/compare?policies=stored,keep-last-3&window=50000&call=20")
    assert "as it was, call 20" in stored.text
    assert "keep-last-3, call 20" in stored.text


def test_comparing_with_unknown_things_is_refused(client):
    base = "/c/store/demo/compare"
    assert client.get(f"{base}?left=5&right=4000").status_code == 404
    assert client.get(f"{base}?other=missing").status_code == 404
    assert client.get(f"{base}?policies=/etc/passwd").status_code == 400
    assert client.get(f"{base}?policies=mine.toml,none").status_code == 400
    assert client.get("/c/store/missing/compare").status_code == 404


def test_fork_is_compared_with_its_parent(url):
    from foveate import open_conversation

    with open_conversation("demo", store=url, window=20_000) as chat, chat.fork("demo/fork", at=20) as fork:
        fork.append("Another way.")
    with open_store(url) as store, client_of(build_app(store)) as client:
        text = client.get("/c/store/demo/compare?other=demo/fork").text
        assert "demo/fork" in text
        assert "only left" in text
        assert "only right" in text


def test_job_is_cancelled_with_a_form_also_in_read_only_mode(url):
    with open_store(url) as store, client_of(build_app(store, access=Access(is_read_only=True))) as client:
        jobs: Jobs = client.app.state.jobs
        gate = threading.Event()

        def wait(progress):
            progress(1, 10)
            gate.wait(60)
            progress(2, 10)

        job = jobs.start("", "gate", wait)
        assert client.get(f"/jobs/{job.id}").json()["status"] in ("waiting", "running")
        assert client.post(f"/jobs/{job.id}/cancel", data={"back": "/"}).status_code == 403
        page = client.get("/c/store/demo/compare?policies=none,prune").text
        token = re.search(r'name="token" value="([^"]+)"', page)[1]
        answer = client.post(f"/jobs/{job.id}/cancel", data={"token": token, "back": "//elsewhere.example/"})
        assert (answer.status_code, answer.headers["location"]) == (303, "/")
        gate.set()
        assert job.wait(60)
        assert job.status == "cancelled"
        assert client.get(f"/jobs/{job.id}").json() == {"status": "cancelled", "done": 1, "total": 10}
        assert client.get("/jobs/unknown").status_code == 404


def test_cancelled_replay_starts_again_only_when_asked(client):
    path = "/c/store/demo/compare?policies=browser,none"
    client.get(path)
    jobs: Jobs = client.app.state.jobs
    for job in list(jobs._by_key.values()):
        job.cancel()
    text = finished(client, path).text
    if "cancelled" in text:  # Otherwise both replays ended before.
        again = re.search(r'href="([^"]+)">Start again', text)[1].replace("&amp;", "&")
        finished(client, again)
        for link in re.findall(r'href="([^"]+)">Start again', client.get(path).text):
            finished(client, link.replace("&amp;", "&"))
    assert "browser, call" in finished(client, path).text
