"""Opening a conversation: it reads the environment and `./foveate.toml`, and repeats no work."""

from __future__ import annotations

import asyncio
import subprocess
import sys

import pytest

import foveate
from foveate import Options, open_async_conversation, open_conversation, open_store
from foveate.errors import BadSetting
from foveate.open import grouped
from foveate.policies import load_policies
from foveate.testing import answer, call


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def results(chat: foveate.Conversation) -> list[str]:
    """Return three results of a run as the next call shows them."""
    for n in range(3):
        chat.append([call(f"c{n}"), answer(f"c{n}", "x" * 400)])
    return [entry.message.text[:9] for entry in chat.prepare() if entry.is_result]


WHOLE, SHORT = "x" * 9, "[Omitted:"


def test_opening_reads_the_file_in_the_folder(here):
    (here / "foveate.toml").write_text('policy = "keep-last-1"\nwindow = 50_000\nformat = "anthropic"\n')
    chat = open_conversation("c")
    assert (chat.format.name, chat.view.budget.window) == ("anthropic", 50_000)
    assert results(chat) == [SHORT, SHORT, WHOLE]


def test_the_environment_overrides_the_file_and_a_keyword_both(here, monkeypatch):
    (here / "foveate.toml").write_text('policy = "keep-last-1"\nwindow = 50_000\n')
    monkeypatch.setenv("FOVEATE_POLICY", "keep-last-2")
    assert results(open_conversation("c")) == [SHORT, WHOLE, WHOLE]
    assert results(open_conversation("c", policy="none")) == [WHOLE] * 3
    assert results(open_conversation("c", options=Options(settings={"filter": {"keep": 1}}))) == [SHORT, SHORT, WHOLE]


def test_opening_for_asyncio_reads_the_same_settings(here, monkeypatch):
    monkeypatch.setenv("FOVEATE_WINDOW", "60_000")
    monkeypatch.setenv("FOVEATE_STORE", "sqlite:///chat.db")
    monkeypatch.setenv("FOVEATE_TENANT", "acme")

    async def run() -> int:
        async with await open_async_conversation("c") as chat:
            await chat.append("hi")
            return (await chat.plan()).before.budget.window

    assert asyncio.run(run()) == 60_000
    with open_store("sqlite:///chat.db") as store:
        assert (store.names("acme"), store.names("")) == (["c"], [])


def test_a_fork_keeps_the_settings_of_its_origin(here, monkeypatch):
    monkeypatch.setenv("FOVEATE_WINDOW", "60_000")
    monkeypatch.setenv("FOVEATE_TENANT", "acme")
    chat = open_conversation("c", policy="prune", options=Options(settings={"filter": {"keep": 1}}))
    chat.append("hi")
    monkeypatch.setenv("FOVEATE_WINDOW", "nonsense")
    fork = chat.fork("f")
    assert fork.view.budget.window == 60_000
    assert results(fork) == [SHORT, SHORT, WHOLE]


def test_a_wrong_setting_opens_no_store(here, monkeypatch):
    monkeypatch.setenv("FOVEATE_STORE", "sqlite:///chat.db")
    for name, text in (("FOVEATE_WINDOW", "0"), ("FOVEATE_PRUNE_PROTECT", "x"), ("FOVEATE_WINDOWS", "5")):
        with monkeypatch.context() as also:
            also.setenv(name, text)
            with pytest.raises(BadSetting, match=name):
                open_conversation("c")
    assert list(here.iterdir()) == []


def test_objects_are_accepted_together_with_settings(here, monkeypatch):
    monkeypatch.setenv("FOVEATE_STORE", "sqlite:///chat.db")
    monkeypatch.setenv("FOVEATE_FORMAT", "anthropic")
    with open_store("memory:") as store:
        chat = open_conversation("c", store=store, window=9_000, policy=[lambda view: ()])
        assert (chat.format.name, store.names("")) == ("anthropic", ["c"])
    assert list(here.iterdir()) == []
    with pytest.raises(BadSetting, match="store= must be a URL"):
        open_conversation("c", store=5)


def test_none_stands_for_the_setting(here):
    nothing = dict.fromkeys(["store", "format", "model", "window", "reserve", "policy", "settings", "tenant"])
    chat = open_conversation("c", **grouped({**nothing, "window": 9_000}))
    assert chat.format.name == "openai"
    assert results(chat) == [WHOLE] * 3


def test_opening_works_in_a_deleted_folder(tmp_path):
    code = (
        "import os, foveate; os.rmdir(os.getcwd()); os.environ['FOVEATE_WINDOW'] = '5_000'; "
        "print(foveate.open_conversation('c').view.budget.window)"
    )
    gone = tmp_path / "gone"
    gone.mkdir()
    done = subprocess.run([sys.executable, "-c", code], cwd=gone, env=python_path(), capture_output=True, text=True)
    assert (done.stdout, done.returncode) == ("5000\n", 0), done.stderr


@pytest.mark.parametrize("name", ["balanced", "prune", "coding"])
def test_openings_share_the_policies_of_a_shipped_preset(name):
    assert load_policies(name)[0] is load_policies(name)[0]


def test_a_preset_in_a_file_is_read_at_each_opening(here):
    preset = here / "mine.toml"
    preset.write_text("[filter]\nkeep = 1\n")
    assert results(open_conversation("a", policy="mine.toml", window=9_000)) == [SHORT, SHORT, WHOLE]
    preset.write_text("[filter]\nkeep = 2\n")
    assert results(open_conversation("b", policy="mine.toml", window=9_000)) == [SHORT, WHOLE, WHOLE]


def test_settings_are_imported_only_if_one_is_set(here):
    code = (
        "import sys, foveate; foveate.open_conversation('c', policy='none', window=9_000); "
        "print('foveate.settings' in sys.modules)"
    )
    for extra, imported in (({}, "False\n"), ({"FOVEATE_WINDOW": "5000"}, "True\n")):
        done = subprocess.run([sys.executable, "-c", code], env=python_path(**extra), capture_output=True, text=True)
        assert done.stdout == imported, done.stderr


def python_path(**more: str) -> dict[str, str]:
    return {"PYTHONPATH": ":".join(path for path in sys.path if path), "PATH": "/usr/bin:/bin", **more}


def test_window_under_a_thousand_tokens_is_refused():
    with pytest.raises(BadSetting, match=r"^Window must be at least 1,000 tokens, not 12\."):
        open_conversation("c", store="memory:", window=12)
    chat = open_conversation("c", store="memory:", window=1_000)
    chat.append("Hello.")
    with pytest.raises(BadSetting, match="at least 1,000 tokens, not 999"):
        chat.prepare(window=999)
