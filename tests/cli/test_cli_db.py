"""`foveate db`: actions, bindings, prompts and runs."""

from __future__ import annotations

import io
import json

import pytest
from msgspec import structs

from foveate.core.catalog import Action, Binding, Prompt
from foveate.core.messages import user
from foveate.core.runs import AgentRun, AgentRunStep
from foveate.core.stamps import Usage
from foveate.ports import append
from foveate.stores.sqlite import SqliteStore
from foveate.testing.rows import chain

BEGUN = 1_795_338_000_000
"""22 November 2026, 09:00:00 UTC."""


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FOVEATE_STORE", "sqlite:///chat.db")
    return tmp_path


@pytest.fixture
def standard_input(monkeypatch):
    """Return a function that puts text on standard input."""

    def standard_input(text: bytes) -> None:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text)))

    return standard_input


@pytest.fixture
def shop(db, here):
    """Create a database with an action of an agent, and a prompt."""
    (here / "short.md").write_text("In {{ target }} characters: {{ text }}\n")
    db("prompt", "set", "Short", "short.md")
    db("action", "set", "search", "--description", "Searches the shop.")
    db("binding", "set", "support", "search")


@pytest.fixture
def chat(here):
    """Create a conversation with a run of four steps, and a run that is not finished."""
    with SqliteStore("chat.db") as store:
        head = store.open("", "support-456")
        rows = chain([user("Where is it?"), user("In Hamburg.")], head)
        head = append(store, head, rows)
        usage = Usage(1200, 800, None, 140)
        done = AgentRun("7f3a", "support", "support-456", "Where is it?", "p/3", "stopped", "turns", "In Hamburg.")
        store.put_run(head, structs.replace(done, turns=2, usage=usage, cost=0.0127, begun=BEGUN, ended=BEGUN + 4200))
        store.put_run(head, AgentRun("7f9", "support", "support-456", "More? " * 20, begun=BEGUN + 5000))
        steps = [
            AgentRunStep("7f3a", 1, "model", "demo", state="done", turn=1, begun=BEGUN, ended=BEGUN + 1500),
            AgentRunStep("7f3a", 2, "action", "track", "c1", '{"id": 7}', "\n".join("abcdefgh"), turn=1),
            AgentRunStep("7f3a", 3, "action", "file", "c2", "{}", "half \ud83d", "\x1b[31mno", "failed", turn=1),
            AgentRunStep("7f3a", 4, "model", "demo", message=rows[1].id, state="done", turn=2, begun=1, ended=1),
        ]
        for step in steps:
            store.put_step(head, step)
    return steps


def stored() -> tuple[list[Action], list[Binding], list[Prompt]]:
    with SqliteStore("chat.db") as store:
        return store.actions(""), store.bindings(""), store.prompts("")


# ------------------------------------------------------------------------------------------------------------ help


@pytest.mark.parametrize(
    "command",
    [
        *([], ["action"], ["binding"], ["prompt"], ["run"]),
        *(["action", "list"], ["action", "set"], ["action", "drop"]),
        *(["binding", "list"], ["binding", "set"], ["binding", "drop"]),
        *(["prompt", "list"], ["prompt", "show"], ["prompt", "set"], ["prompt", "drop"]),
        *(["run", "list"], ["run", "show"]),
    ],
)
def test_help_is_plain_text_with_an_example(run, command):
    code, out, err = run("db", *command, "--help")
    assert (code, err) == (0, "")
    assert "Usage: foveate db" in out
    assert len(command) < 2 or f"Example: foveate db {' '.join(command)} " in out


def test_store_is_a_file_or_a_url(db, shop):
    assert db("action", "list", "--store", "chat.db") == db("action", "list", "--store", "sqlite:///chat.db")


def test_empty_catalog_says_so(db, here):
    SqliteStore("chat.db").close()
    assert db("action", "list") == "There are no actions.\n"
    assert db("binding", "list") == "No agent has an action.\n"
    assert db("binding", "list", "--agent", "me") == "me has no action.\n"
    assert db("prompt", "list") == "There are no prompts. foveate uses its own.\n"
    assert db("action", "list", "--json") == ""


# ------------------------------------------------------------------------------------------- actions and bindings


def test_action_is_set_changed_listed_and_dropped(db, standard_input):
    standard_input(b'{"type": "object"}\n')
    db("action", "set", "search", "--description", "Searches.", "--parameters", "-")
    assert stored()[0] == [Action("search", "Searches.", '{"type": "object"}')]
    output = db("action", "set", "search", "--description", "Looks.")
    assert output.splitlines() == [
        "search  Looks.",
        'Parameters: {"type": "object"}',
        "Prompt for summaries of its results: the default",
    ]
    assert stored()[0] == [Action("search", "Looks.", '{"type": "object"}')]
    db("action", "set", "search", "--parameters", "")
    assert [json.loads(line) for line in db("action", "list", "--json").splitlines()] == [
        {"name": "search", "description": "Looks.", "parameters": "", "default_compact_prompt": ""}
    ]
    assert db("action", "drop", "search") == "search is deleted.\n"
    assert stored()[0] == []


def test_binding_set_changes_only_the_named_fields(db, shop):
    output = [
        db("binding", "set", "support", "search", *words.split())
        for words in (
            "--turns 3",
            "--mode remove",
            "--mode compact",
            "--compact-length 80",
            "--compact-mode summary --prompt Short",
            "--turns 1",
            "--compact-length none",
            "--compact-mode first_chars",
            "--turns 0 --mode remove",
            "--turns never",
            "--mode none",
        )
    ]
    assert [line.removeprefix("support/search: results ") for line in output] == [
        "stay, because the mode is none.\n",
        "are removed after 3 calls.\n",
        "are cut to 500 characters after 3 calls.\n",
        "are cut to 80 characters after 3 calls.\n",
        'become a summary of about 80 characters by the prompt "Short" after 3 calls.\n',
        'become a summary of about 80 characters by the prompt "Short" after 1 call.\n',
        'become a summary by the prompt "Short" after 1 call.\n',
        "are cut to 500 characters after 1 call.\n",
        "are removed before any call sees them.\n",
        "stay, because --turns does not say when to remove them.\n",
        "stay.\n",
    ]
    assert stored()[1] == [Binding("support", "search")]


def test_binding_list_takes_an_agent_or_all(db, shop):
    db("binding", "set", "writer", "search", "--turns", "2", "--mode", "remove")
    rows = [line.split() for line in db("binding", "list").splitlines() if line]
    assert rows == [
        ["agent", "action", "turns", "mode", "results"],
        ["support", "search", "-", "none", "stay"],
        ["writer", "search", "2", "remove", "are", "removed", "after", "2", "calls"],
    ]
    (row,) = [json.loads(line) for line in db("binding", "list", "--agent", "writer", "--json").splitlines()]
    assert row == structs.asdict(Binding("writer", "search", 2, "remove"))
    assert db("binding", "drop", "writer", "search") == "writer/search is deleted.\n"
    assert db("action", "list").splitlines()[1].split()[:2] == ["search", "support"]


@pytest.mark.parametrize(
    ("words", "answer"),
    [
        ("binding set support Search", "names an action that does not exist. Known: search."),
        ("binding set support search --mode remove --compact-length 9", "has compact_length, without effect in its"),
        (
            "binding set support search --compact-mode summary",
            "has compact_mode, without effect in its result_expiration_mode none",
        ),
        ("binding set support search --mode compact --compact-length 0", "compact_length of the binding"),
        ("binding set support search --turns -1", "is -1; allowed: a whole number of 0 or more"),
        ("binding set support search --turns soon", "--turns must be a whole number or 'never', not 'soon'."),
        ("binding set support search --mode Compact", 'Invalid value "Compact"'),
        (
            "binding set support search --mode compact --compact-mode summary --prompt no",
            "the prompt 'no', which",
        ),
        ("binding drop support other", "support does not have the action 'other'."),
        ("action drop search", "'search' is still bound to support. Drop the bindings first."),
        ("action drop other", "There is no action 'other'."),
        ("action set search --prompt no", "names the prompt 'no', which does not exist. Known: Short."),
        ("action set search --parameters nowhere.json", "nowhere.json cannot be read: No such file"),
        ("action set search --parameters short.md", "are not JSON"),
        ("prompt set Short", "Name the file with the text, or - for standard input."),
        ("prompt set Other --description x", "There is no prompt 'Other'."),
        ("prompt set short short.md", "There is a prompt 'Short' already, and 'short' means the same."),
        ("prompt set Short --bogus", "Unknown option: --bogus."),
        ("prompt show Other", "There is no prompt 'Other'."),
        ("prompt drop Other", "There is no prompt 'Other'."),
        ("run list nobody", "There is no conversation 'nobody'"),
        ("action list --store memory:", "The store memory: is empty when a command starts."),
        ("action list --store sqlite:///other.db", "There is no database other.db."),
        ("action list --store other.db", "There is no database other.db."),
        ("action list --store mysql://x", "There is no store 'mysql://x'"),
        ("action set a --prompt no --store sqlite:///new.db", "There is no prompt yet"),
    ],
)
def test_wrong_arguments_change_nothing(refused, shop, words, answer):
    assert answer in refused(*words.split())


# ----------------------------------------------------------------------------------------------------------- prompts


def test_prompt_is_set_shown_described_and_dropped(db, standard_input, here):
    standard_input("Kurz: {{ text }} — é".encode())
    assert db("prompt", "set", "Compact Agent Message", "-") == "Compact Agent Message\n20 characters.\n"
    db("prompt", "set", "Compact Agent Message", "--description", "of the house")
    (here / "new.md").write_text("{{ text }}\n")
    db("prompt", "set", "Compact Agent Message", "new.md")
    assert stored()[2] == [Prompt("Compact Agent Message", "{{ text }}\n", "of the house")]
    assert db("prompt", "show", "Compact Agent Message") == "{{ text }}\n"
    assert db("prompt", "list").splitlines()[1].split("  ")[:2] == ["Compact Agent Message", "by default"]
    assert json.loads(db("prompt", "show", "Compact Agent Message", "--json"))["text"] == "{{ text }}\n"
    db("prompt", "drop", "Compact Agent Message")
    assert stored()[2] == []


def test_prompt_that_is_not_utf8_is_refused(refused, standard_input):
    standard_input(b"\xff {{ text }}")
    assert refused("prompt", "set", "x", "-").startswith("Standard input is not text in UTF-8")


def test_each_tenant_has_its_own_catalog(db, shop):
    db("action", "set", "look", "--tenant", "acme")
    assert [json.loads(line)["name"] for line in db("action", "list", "--json").splitlines()] == ["search"]
    assert [json.loads(line)["name"] for line in db("action", "list", "--json", "--tenant", "acme").splitlines()] == [
        "look"
    ]


# -------------------------------------------------------------------------------------------------------------- runs


def test_run_list_prints_runs(db, chat):
    rows = [" ".join(line.split()) for line in db("run", "list", "support-456").splitlines() if line]
    assert rows == [
        "run agent state task started (UTC) took tokens cost calls",
        "7f3a support stopped Where is it? 2026-11-22 09:00:00 4.2 s 2,000 + 140 $0.0127 2",
        "7f9 support running More? More? More? More? More? More? Mor… 2026-11-22 09:00:05 - - - 0",
    ]
    rows = [json.loads(line) for line in db("run", "list", "support-456", "--json").splitlines()]
    assert [row["id"] for row in rows] == ["7f3a", "7f9"]
    assert rows[0]["usage"] == {
        "input": 1200,
        "cache_read": 800,
        "cache_write": None,
        "output": 140,
        "reasoning": None,
        "sent": None,
    }


def test_run_show_prints_shortened_steps(db, chat):
    assert db("run", "show", "support-456", "7f3").splitlines() == [
        "run 7f3a  support in support-456",
        "stopped (turns), started 2026-11-22 09:00:00 UTC, took 4.2 s, 2 model calls, 2,000 + 140 tokens, cost $0.0127",
        "Started by step p/3.",
        "  task: Where is it?",
        "  result: In Hamburg.",
        "",
        "1. model demo  done, turn 1, took 1.5 s",
        "",
        "2. action track  running, turn 1, took -",
        '  in: {"id": 7}',
        "  out: a",
        "    b",
        "    c",
        "    … 3 more lines, --full shows all",
        "    g",
        "    h",
        "",
        "3. action file  failed, turn 1, took -",
        "  in: {}",
        "  out: half \ufffd",
        "  error: ␛[31mno",
        "",
        "4. model demo  done, turn 2, took 0.0 s -> m2",
    ]


def test_run_show_prints_complete_steps_with_full(db, chat):
    assert [line.strip() for line in db("run", "show", "support-456", "7f3a", "--full").splitlines()][10:18] == [
        "out: a",
        *"bcdefgh",
    ]
    run, *steps = [json.loads(line) for line in db("run", "show", "support-456", "7f3a", "--json").splitlines()]
    assert run["task"] == "Where is it?"
    assert steps == [structs.asdict(step) for step in chat]


def test_run_show_prints_a_running_run(db, chat):
    lines = db("run", "show", "support-456", "7f9").splitlines()
    assert lines[1] == "running, started 2026-11-22 09:00:05 UTC, 0 model calls"
    assert lines[-1] == "This run has no steps."


def test_run_show_prefers_the_exact_id(db, chat):
    with SqliteStore("chat.db") as store:
        store.put_run(store.open("", "support-456"), AgentRun("7f", "short", "support-456"))
    assert db("run", "show", "support-456", "7f").splitlines()[0] == "run 7f  short in support-456"


def test_run_show_names_the_conversation_of_a_sub_agent(db, chat):
    with SqliteStore("chat.db") as store:
        head = store.open("", "support-456")
        for number in (5, 6):
            store.put_step(head, AgentRunStep("7f3a", number, "sub-agent", "reader", output="read"))
        inner = store.open("", "support-456/7f3a/5")
        used = Usage(input=100, output=7)
        store.put_run(inner, AgentRun("8", "reader", inner.name, parent="7f3a/5", turns=3, usage=used, cost=0.25))
        own = next(run for run in store.runs(head) if run.id == "7f3a")
    lines = db("run", "show", "support-456", "7f3a").splitlines()
    tokens = f"{(own.usage.prompt_tokens or 0) + 100:,} + {(own.usage.output or 0) + 7:,} tokens"
    total = f"{own.turns + 3} model calls, {tokens}, cost ${(own.cost or 0) + 0.25:.4f}"
    assert lines[2] == f"With sub-agents: {total}."
    assert [line for line in lines if "steps of the sub-agent" in line] == [
        "  steps of the sub-agent: foveate db run list support-456/7f3a/5"
    ]
    assert db("run", "list", "support-456/7f3a/5").splitlines()[1].split()[:2] == ["8", "reader"]


@pytest.mark.parametrize(
    ("id", "answer"),
    [
        ("7f", "2 runs of 'support-456' begin with '7f': 7f3a, 7f9."),
        ("zz", "There is no run 'zz' in 'support-456'. List them: foveate db run list support-456"),
        ("", "There is no run '' in 'support-456'. List them: foveate db run list support-456"),
    ],
)
def test_run_show_refuses_an_ambiguous_id(refused, chat, id, answer):
    assert refused("run", "show", "support-456", id) == answer


def test_run_list_without_runs_says_so(db, chat):
    with SqliteStore("chat.db") as store:
        store.open("", "quiet")
    assert db("run", "list", "quiet") == "No agent has run in quiet.\n"
