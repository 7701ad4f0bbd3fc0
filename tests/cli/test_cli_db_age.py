"""`foveate db age`: it counts old messages, and erases them only with --yes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from foveate import Options, open_conversation
from foveate.core.edits import Span, Summarize
from foveate.core.messages import Text, ToolCall, assistant, tool_result, user
from foveate.core.stamps import PartRetention
from foveate.stores.sqlite import SqliteStore

pytest.importorskip("cyclopts", reason="the extra `cli` is not installed")


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Create a database: two conversations without a tenant and one of zeta, each half summarized."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FOVEATE_STORE", "sqlite:///chat.db")
    ticks = iter(range(1, 10**9))
    with SqliteStore("chat.db") as store:
        for tenant, name in (("", "one"), ("", "two"), ("zeta", "theirs")):
            chat = open_conversation(
                name,
                store=store,
                format="openai",
                policy="off",
                options=Options(tenant=tenant, clock=lambda: next(ticks)),
            )
            chat.append("Look.")
            for n in range(6):
                chat.record(assistant("", ToolCall(f"c{n}", "grep" if n % 2 else "read", "{}")))
                chat.append(tool_result(f"c{n}", f"found {n} " * 50))
            chat.append(user("And?"))
            rows = chat.history(2, 9)
            chat.edit(Summarize(Span(rows[0].id, rows[-1].id), "Four were found."))
    return tmp_path


@pytest.fixture
def age(run) -> Callable[..., str]:
    def age(*arguments: str, code: int = 0) -> str:
        found, out, err = run("db", "age", *arguments)
        assert (found, err) == (code, "")
        return str(out)

    return age


@pytest.fixture
def refused(run) -> Callable[..., str]:
    def refused(*arguments: str) -> str:
        code, out, err = run("db", "age", *arguments)
        assert (code, out) == (2, "")
        return str(err).removeprefix("foveate: ").rstrip("\n")

    return refused


def gone(name: str, tenant: str = "") -> list[int]:
    with SqliteStore("chat.db") as store:
        head = store.open(tenant, name)
        return [row.position for row in store.stamps(head, 1, 99) if not row.size]


def test_age_counts_and_erases_nothing_without_yes(age):
    output = age("--older", "tool results=1 turn").splitlines()
    assert output[0].split() == ["older", "than", "its", "age", "messages", "bytes"]
    assert output[1].split()[:3] == ["tool", "results", "8"]
    assert output[3:] == [
        "Waiting: 2 shown.",
        "In 2 conversations. Repeat the command with --yes to erase them permanently.",
    ]
    assert (gone("one"), gone("two")) == ([], [])


def test_age_with_yes_erases(age, run):
    output = age("--older", "tool results=1 turn", "--who", "cron", "--yes").splitlines()
    assert output[-1] == "8 messages erased in 2 conversations. Now run: foveate db vacuum"
    assert (gone("one"), gone("two"), gone("theirs", "zeta")) == ([3, 5, 7, 9], [3, 5, 7, 9], [])
    code, out, _ = run("db", "verify", "--erased")
    assert (code, out.splitlines()[0], "all is well" in out) == (0, "8 messages erased.", True)
    with SqliteStore("chat.db") as store:
        assert [(one.who, one.reason) for one in store.erasures(store.open("", "one"))] == [("cron", "age")]
    assert age("--older", "tool results=1 turn", "--yes").splitlines()[-1] == "Nothing to erase in 2 conversations."


def test_age_releases_blocks_of_plugins(age, run):
    kept = (PartRetention(), PartRetention(calls=0, plugin="screen"))
    with SqliteStore("chat.db") as store:
        chat = open_conversation("seen", store=store, format="openai", window=10_000)
        for n in range(3):
            chat.append(user("Look.", Text(f"screen {n} " * 50)), kept=kept)
            chat.prepare()
            chat.record(assistant("Seen."))
    assert age("seen", "--older", "plugin blocks=0 turns").splitlines()[1].split()[:3] == ["plugin", "blocks", "3"]
    output = age("seen", "--older", "plugin blocks=0 turns", "--yes").splitlines()
    assert output[-1] == "blocks in 3 messages released in 1 conversation. Now run: foveate db vacuum"
    with SqliteStore("chat.db") as store:
        chat = open_conversation("seen", store=store, format="openai", window=10_000)
        assert [entry.handle for entry in chat.history() if entry.is_released] == ["m1", "m3", "m5"]


def test_age_takes_a_conversation_a_tool_and_several_rules(age):
    age("one", "--older", "tool results:grep=1 turn", "--older", "assistant messages=1 day and 1 turn", "--yes")
    assert (gone("one"), gone("two")) == ([2, 4, 5, 6, 8, 9], [])


def test_age_of_an_unknown_name_erases_nothing(age, refused):
    output = refused("one", "none", "--older", "all=1 turn, even shown", "--yes")
    assert (output, gone("one")) == ("There is no conversation 'none' in chat.db.", [])


def test_age_of_a_tenant_without_conversations_says_so(age):
    assert age("--older", "all=3 turns", "--tenant", "nobody").splitlines()[-1] == (
        "This tenant has no conversations. foveate db tenants lists the tenants."
    )


def test_age_of_every_tenant_prints_json(age):
    output = [
        json.loads(line) for line in age("--older", "all=3 turns", "--every-tenant", "--yes", "--json").splitlines()
    ]
    assert [(one["tenant"], one["conversation"], one["kinds"][0]["messages"]) for one in output] == [
        ("", "one", 6),
        ("", "two", 6),
        ("zeta", "theirs", 6),
    ]
    assert [erased["handles"] for erased in output[2]["erased"]] == ["m2-m7"]
    assert gone("theirs", "zeta") == [2, 3, 4, 5, 6, 7]


def test_age_reads_rules_from_the_settings_file(age, here):
    (here / "foveate.toml").write_text('[ages]\n"tool results" = "3 turns"\nall = ["9 turns", "900 days"]\n')
    assert "tool results" in age("--yes")
    assert gone("one") == [2, 3, 4, 5, 6, 7, 8]  # The result in m9 is of a narrower kind.


def test_wrong_arguments_are_refused(refused, here):
    assert refused().startswith('Retention needs rules. Name one, such as --older "tool results=90 days"')
    assert "is not valid" in refused("--older", "tool results")
    assert "Unknown kind 'tool_result'" in refused("--older", "tool result=9 days")
    assert "Write 90 days" in refused("--older", "all=soon")
    assert "nobody" in refused("nobody", "--older", "all=9 days")
    assert "--every-tenant" in refused("one", "--older", "all=9 days", "--every-tenant")
    (here / "foveate.toml").write_text('[ages]\n\nall = "soon"\n')
    assert refused().startswith("foveate.toml, line 3: ages.all: Age 'soon' is not valid")
    (here / "foveate.toml").write_text("ages = 9\n")
    assert "allowed: a table" in refused()
    assert (gone("one"), gone("two")) == ([], [])
