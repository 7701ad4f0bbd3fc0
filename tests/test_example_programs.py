"""The programs in `examples/` run offline, and their requests stay within the window.

Those of frameworks run in the environments of these frameworks (`tests/hosts`).
"""

from __future__ import annotations

import os
import re
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import foveate.testing
from foveate.testing import StubAnthropic, StubOpenAI

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
LINES = 60
"""The largest number of lines of an example."""
OF_THE_DEMO = ("record_demo.py", "screenplay.py")
PROGRAMS = sorted(path.name for path in EXAMPLES.glob("*.py") if path.name not in OF_THE_DEMO)
SAVED = re.compile(r"^\d+ calls: .* tokens sent, .* saved \((\d+)%\)$", re.MULTILINE)


@pytest.fixture
def clients(monkeypatch, tmp_path) -> list[Any]:
    """The stub clients that an example opens. There is no key, and the folder is empty."""
    opened: list[Any] = []
    for kind in (StubAnthropic, StubOpenAI):

        def make(script: Any, kind: Any = kind) -> Any:
            opened.append(kind(script))
            return opened[-1]

        monkeypatch.setattr(foveate.testing, kind.__name__, make)
    for key in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "MODEL", "DATABASE_URL"):
        monkeypatch.delenv(key, raising=False)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["example"])
    return opened


def run(name: str, *arguments: str) -> None:
    sys.argv[1:] = arguments
    runpy.run_path(str(EXAMPLES / name), run_name="__main__")


@pytest.mark.parametrize("name", PROGRAMS)
def test_example_is_short_and_listed(name):
    text = (EXAMPLES / name).read_text(encoding="utf-8")
    assert len(text.splitlines()) <= LINES
    assert f"[`{name}`]({name})" in (EXAMPLES / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("name", "answer", "requests", "saved"),
    [
        ("anthropic_loop.py", "It keeps the books and the stock of a mill.", 65, 40),
        ("openai_responses.py", "The longest file has 183 lines.", 30, 35),
    ],
)
def test_loop_reads_more_than_its_window(name, answer, requests, saved, clients, capsys):
    run(name)
    printed = capsys.readouterr().out
    assert printed.startswith(f"{answer}\n")
    (percent,) = SAVED.findall(printed)
    assert int(percent) >= saved
    assert len(clients[0].requests) == requests
    assert max(len(str(request)) for request in clients[0].requests) < 24_000 * 4.5


def test_chat_goes_on_where_it_stopped(clients, capsys):
    run("openai_chat.py", "One", "Two")
    run("openai_chat.py", "Three")
    answers = [line for line in capsys.readouterr().out.splitlines() if line.startswith("I see")]
    assert answers == ["I see 2 messages.", "I see 4 messages.", "I see 6 messages."]


def test_existing_list_stays_whole_and_fits(clients, capsys):
    run("existing_list.py")
    first, answer, *_ = capsys.readouterr().out.splitlines()
    found = re.fullmatch(r"387 messages in the list, (\d+) in the request", first)
    assert found is not None
    assert int(found[1]) < 150
    assert answer == "Sixteen bugs are fixed."
    assert max(len(str(request)) for request in clients[0].requests) < 64_000 * 4.5


def test_own_policy_runs_with_its_tests(clients, capsys, tmp_path):
    run("own_policy.py")
    assert "expire-searches [Old search: output" in capsys.readouterr().out
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(EXAMPLES / "own_policy.py")]
    environment = {**os.environ, "PYTHONPATH": str(EXAMPLES.parent / "src")}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300)
    assert "2 passed" in done.stdout


@pytest.mark.parametrize("database", ["sqlite", "postgresql"])
def test_web_service_answers_continues_and_erases(database, clients, monkeypatch, request):
    pytest.importorskip("fastapi", reason="FastAPI is not installed (the extra `dev`)")
    from fastapi.testclient import TestClient

    if database == "postgresql":
        monkeypatch.setenv("DATABASE_URL", request.getfixturevalue("postgres_url"))
    for start in range(2):  # The second process finds the messages of the first.
        service = runpy.run_path(str(EXAMPLES / "web_service.py"))
        with TestClient(service["app"]) as client:
            answer = client.post("/ann/messages", json={"text": "Hello"}).json()["answer"]
            assert answer.startswith("Hello!")
            texts = [row["text"] for row in client.get("/ann/messages").json()]
            assert texts == ["Hello", answer] * (start + 1)
            assert client.get("/bob/messages").json() == []
            assert client.get("/ann/cost").json()["tokens_saved"] == 0
    other = runpy.run_path(str(EXAMPLES / "web_service.py"))
    with TestClient(service["app"]) as client, TestClient(other["app"]) as neighbor:
        assert len(neighbor.get("/ann/messages").json()) == 4
        client.post("/ann/messages", json={"text": "Hello"})
        assert len(neighbor.get("/ann/messages").json()) == 6
        assert neighbor.get("/ann/cost").json() == client.get("/ann/cost").json()
        assert client.delete("/ann").json() == {"messages": 6}
        assert {row["text"] for row in client.get("/ann/messages").json()} == {""}
