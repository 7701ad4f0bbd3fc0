"""`foveate chat` with piped lines: commands, resuming, approvals and wrong options."""

from __future__ import annotations

import io
import json
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

import foveate
from foveate import open_store
from foveate.cli.chat import options as opening
from foveate.cli.chat.commands import COMMANDS, complete_line

Chat = Callable[..., str]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Create six files of about 1,500 tokens each."""
    place = tmp_path / "files"
    place.mkdir()
    for number in range(6):
        text = f"# Chapter {number}\n" + f"The ship of chapter {number} sails on.\n" * 170
        (place / f"chapter_{number}.md").write_text(text, encoding="utf-8")
    return place


@pytest.fixture
def chat(run, folder, tmp_path, monkeypatch) -> Chat:
    """Return a function that sends lines to a chat with the demo, and returns the output."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))

    def chat(*lines: str, name: str = "talk", model: str = "demo", code: int = 0, **options: object) -> str:
        monkeypatch.setattr(sys, "stdin", io.StringIO("".join(f"{line}\n" for line in lines)))
        arguments = [part for key, value in options.items() for part in (f"--{key}", value) if part is not True]
        chosen = ["--model", model] if model else []
        ended, out, err = run("chat", name, *chosen, "--folder", folder, *arguments)
        assert (ended, err) == (code, "") if code == 0 else ended == code
        return out if code == 0 else err

    return chat


def answers(out: str) -> list[str]:
    """Return the output after each line, without the meter."""
    blocks = out.split("\n\n> ")[1:]
    return ["\n".join(line for line in block.splitlines()[1:] if not line.startswith("  [")) for block in blocks]


def stored(tmp_path: Path, name: str = "talk") -> foveate.Conversation:
    return foveate.open_conversation(name, store=f"sqlite:///{tmp_path}/data/foveate/chats.db", window=16_000)


def test_chat_answers_each_piped_line_and_prints_the_meter(chat):
    out = chat("hello", "", "find chapter 3")
    lines = out.splitlines()
    assert lines[0].startswith("talk with demo, stored in sqlite:///")
    assert lines[1:4] == [
        "",
        "> hello",
        "Hello! Try `what is in this folder`, or `tour`. `help` lists all that I understand.",
    ]
    assert lines[4].startswith("  [")
    assert " of 16,000 (" in lines[4]
    assert "  * search_files chapter 3 ignore_case=true  " in out
    assert "'chapter 3' is in 100 lines in 1 file:" in out


def test_tour_overflows_the_window_and_prints_receipts(chat, tmp_path):
    out = chat("tour", "/cost", window=9_000)
    assert out.count("  * read_file chapter_") == 6
    assert "  ~ " in out
    assert "; /undo reverts it" in out
    assert "The tour is complete: 6 files" in out
    title, bill, *sums, note = answers(out)[1].splitlines()
    assert title.split()[:7] == ["model", "calls", "input", "cached", "written", "other", "output"]
    prompts, *kinds, output, _ = (int(figure.replace(",", "")) for figure in bill.split()[2:])
    assert prompts == sum(kinds) > output > 0
    cost = {line[:47].strip(): int(line[47:].replace(",", "")) for line in sums}
    assert cost["messages in all calls"] + cost["system prompt and tools in all calls"] == prompts
    assert cost["input of all calls"] == prompts
    assert cost["messages in all calls"] < cost["messages if each call sent the whole history"]
    assert cost["saved, in tokens at the price of input"] > 0
    assert note.startswith("Input is the sum of cached, written and other.")
    with stored(tmp_path) as talk:
        assert talk.context().tokens < 9_000
        assert talk.journal.verify() == []


def test_chat_says_once_when_the_history_outgrows_the_window(chat):
    out = chat("tour", "find chapter 3", window=9_000)
    (said,) = [line for line in out.splitlines() if line.startswith("  = ")]
    figures = [int(figure.replace(",", "")) for figure in re.findall(r"\d[\d,]*\d", said)]
    whole, window, sent = figures
    assert sent < window == 9_000 < whole
    assert "A provider would refuse to read all of it." in said
    assert "  = " not in chat("find chapter 3", window=9_000)  # It was larger when the chat began.


def test_chat_without_a_policy_ends_at_the_window(run, folder, tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.StringIO("tour\n"))
    options = ("--model", "demo", "--folder", folder, "--store", tmp_path / "a.db", "--window", "9000")
    code, out, _ = run("chat", "wall", *options, "--policy", "off")
    assert code == 1
    assert "demo did not answer: prompt is too long: " in out
    assert "The policy makes too little room. Start the chat wall again with --policy balanced." in out
    assert "  = " not in out  # Nothing makes room, so the provider itself says it.


def test_chat_reopens_a_conversation_with_its_last_model(chat):
    chat("remember: the port is 8080")
    out = chat("what did I say about the port", model="")
    assert out.splitlines()[:4] == [
        "talk with demo: 2 messages, 2 in the view with 40 tokens. The last exchange:",
        "> remember: the port is 8080",
        "I'll remember: the port is 8080. Ask me later what you said about it, however long the chat gets.",
        "",
    ]
    assert (
        answers(out)
        == [
            "I'll keep",
        ]
        or "You said: remember: the port is 8080" in out
    )


def test_context_lists_kinds_and_the_largest_messages(chat):
    replies = answers(chat("read chapter_0.md", "/context"))[1]
    assert "   window                   16,000" in replies
    assert "4 of 4 messages shown; the history has " in replies
    assert "   m3  results (read_file)  " in replies


def test_why_takes_a_number_or_a_handle(chat):
    one, two = answers(chat("tour", "/why 5", "/why m5", window=9_000))[1:]
    assert one == two
    assert "Edit 1, turn " in one


def test_expand_shows_a_message_in_full_at_the_next_call(chat, tmp_path):
    chat("read chapter_0.md", "read chapter_1.md", "read chapter_2.md", policy="keep-last-1")
    with stored(tmp_path) as talk:
        assert [entry.handle for entry in talk.view if entry.shrunk] == ["m3", "m7"]
    replies = answers(chat("/expand 3", "/expand 3", policy="keep-last-1"))
    assert replies[0].startswith("The next call shows m3 in full again, ")
    assert "# Chapter 0" in replies[0]
    assert replies[1] == "m3 cannot be expanded: it is shown whole."
    with stored(tmp_path) as talk:
        assert [entry.handle for entry in talk.view if entry.shrunk] == ["m7"]


def test_pinned_message_stays_until_it_is_unpinned(chat, tmp_path):
    chat("read chapter_0.md", "/pin 3", "read chapter_1.md", "read chapter_2.md", policy="keep-last-1")
    with stored(tmp_path) as talk:
        assert [entry.handle for entry in talk.view if entry.is_pinned()] == ["m3"]
        assert [entry.handle for entry in talk.view if entry.shrunk] == ["m7"]
    assert answers(chat("/unpin m3")) == ["m3 is no longer pinned."]
    with stored(tmp_path) as talk:
        assert not any(entry.is_pinned() for entry in talk.view)


def test_undo_reverts_changes_one_by_one(chat, tmp_path):
    chat(*(f"read chapter_{number}.md" for number in range(6)), window=100_000, policy="balanced")
    out = answers(chat("/compact the ships", "/undo", "/undo", window=100_000))
    assert out[0].startswith("  ~ ")
    assert "; /undo reverts it" in out[0]
    before, after = out[0].split(" edits, ")[-1].split(" edit, ")[-1].split(" tokens")[0].split(" -> ")
    assert out[1] == f"Undone: {after} -> {before} tokens."
    assert out[2] == "There is nothing to undo: no edit changes the view."
    with stored(tmp_path) as talk:
        assert all(entry.span is None for entry in talk.view)


def test_chat_shows_receipts_of_changes_after_an_answer(chat, tmp_path):
    policy = tmp_path / "mine.toml"
    policy.write_text("summarizer = 'digest'\n[checkpoint]\ntrigger_at = 12\nkeep_recent = 5\n", encoding="utf-8")
    out = answers(chat(*["count to 200"] * 6, policy=policy))
    assert ["  ~ " in one for one in out] == [False] * 5 + [True]
    assert "\n  ~ checkpoint: 2 edits, " in out[5]
    assert "written by digest; /undo reverts it" in out[5]


def test_undo_takes_the_number_of_an_edit(chat):
    chat("read chapter_0.md", "/pin 1", "/pin 2")
    out = answers(chat("/undo 1", "/undo one", "/undo 99"))
    assert out[0].startswith("Undone: ")
    assert out[1].startswith("/undo takes the number of an edit")
    assert "99" in out[2]


def test_fork_leaves_the_original_unchanged(chat, tmp_path):
    out = answers(chat("hello", "/fork other", "count to 3", "/fork other", "/fork"))
    assert out[1] == "You are now in other, a fork of talk with the same history. talk stays as it is."
    assert "other" in out[3]
    assert out[4] == "A fork needs a name, such as /fork another-try."
    with stored(tmp_path) as talk, stored(tmp_path, "other") as other:
        assert (len(talk), len(other)) == (2, 4)


def test_resume_is_refused_in_a_fork_of_an_answered_chat(chat):
    """A fork once reported that the model had not answered, and offered /resume again."""
    out = answers(chat("hello", "/fork other", "/resume"))
    assert out[2] == "There is nothing to resume: the last answer is complete."


def test_conversation_in_memory_switches_model_and_forks(chat):
    out = answers(chat("remember: one", "/model demo", "/fork other", "/fork third", "/history", store="memory:"))
    assert out[4].splitlines()[0] == "   m1  user       remember: one"
    assert out[3] == "You are now in third, a fork of other with the same history. other stays as it is."


def test_search_finds_hidden_and_shortened_text(chat):
    chat("read chapter_0.md", "read chapter_1.md", policy="keep-last-1")
    out = answers(chat("read chapter_2.md", "/search Chapter 0", "/search zebra", "/search", policy="keep-last-1"))
    assert out[1].startswith("   m3  read_file  turn 1  ")
    assert out[2] == "No text that the view hides or shortens has 'zebra'."
    assert out[3].startswith("/search needs words")


def test_tools_lists_the_tools_that_ask_first(chat):
    replies = answers(chat("/tools", tools="shell"))[0]
    assert [line.split()[0] for line in replies.splitlines()] == ["run_command", "expand"]
    assert "asks you first" in replies
    assert "asks you first" not in answers(chat("/tools", tools="shell", yes=True))[0]


def test_history_lists_messages_shown_or_not(chat):
    chat("read chapter_0.md", "read chapter_1.md", policy="keep-last-1")
    replies = answers(chat("/history", "/history 2", "/history 3-4", "/history all", policy="keep-last-1"))
    assert [line.split()[:2] for line in replies[0].splitlines()][:4] == [
        ["m1", "user"],
        ["m2", "assistant"],
        ["m3", "tool"],
        ["m4", "assistant"],
    ]
    assert [line.endswith("not shown in full") for line in replies[0].splitlines()].count(True) == 1
    assert replies[1].splitlines() == replies[0].splitlines()[1:]
    assert replies[2].splitlines() == replies[0].splitlines()[2:4]
    assert replies[3].startswith("/history needs a message, such as /history 12.")


def test_unknown_model_leaves_the_chat_unchanged(chat):
    out = answers(chat("/model", "/model nobody:x", "/model openai:what-is-this", "hello"))
    assert out[0] == "demo. /model NAME switches to another one, such as anthropic:claude-haiku-4-5."
    assert out[1].startswith("Model 'nobody:x' is unknown")
    assert out[2] == "The window of openai:what-is-this is not known. Name it, in tokens: --window 128000."
    assert out[3].startswith("Hello!")


def test_completion_offers_commands_and_their_arguments(chat, tmp_path):
    chat("read chapter_0.md", "/pin 1", "read chapter_1.md", policy="keep-last-1")
    with stored(tmp_path) as talk:

        def completed(text: str) -> list[str]:
            return complete_line(SimpleNamespace(chat=talk), text)  # type: ignore[arg-type]

        assert completed("/co") == ["/context", "/compact ", "/cost"]
        assert completed("/quit") == ["/quit"]
        assert completed("/expand ") == ["/expand m3"]
        assert completed("/unpin m") == ["/unpin m1"]
        assert completed("/why m8") == ["/why m8"]
        assert completed("/model d") == ["/model demo", "/model deepseek:"]
        assert [line.split()[0] for line in completed("/undo ")] == ["/undo"] * len(talk.journal.receipts())
        assert [completed(text) for text in ("", "hello", "/nothing ", "/why x", "/cost ")] == [[]] * 5


def test_help_lists_every_command_and_quit_ends_the_chat(chat):
    out = chat("/help", "/quit", "hello")
    for one in COMMANDS:
        assert f"   /{one.name}" in out
    assert "> hello" not in out
    assert "> hello" not in chat("/exit", "hello")


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("/contxt", "There is no /contxt. Did you mean /context, /cost?"),
        ("/zzz", "There is no /zzz. Type /help for the commands; a line that begins with // is for the model."),
        ("/", "There is no /. Type /help"),
        ("/why", "/why needs a message, such as /why 12."),
        ("/why 99", "Nothing here is called 'm99'."),
        ("/expand one", "/expand needs a message"),
        ("/pin 99", "Nothing here is called 'm99'."),
        ("/why 1.1.1", ""),
        ("/expand 1-99", "Nothing here is called"),
        ("/history 0", "Nothing here is called 'm0'."),
        ("/undo 0", "/undo takes the number of an edit"),
        ("/fork talk", "There already is a conversation 'talk'."),
        ("/fork a\0b", "The name 'a\\x00b' holds a NUL"),
        ("/fork try 2", "The name of a fork has no blanks: /fork try-2."),
        ("/cost now", "   model  calls "),
        ("/compact", "There is nothing to compact"),
        ("/undo", "There is nothing to undo"),
    ],
)
def test_chat_continues_after_a_wrong_command(chat, line, expected):
    out = answers(chat("hello", line, "hello"))
    assert out[1].startswith(expected)
    assert out[2].startswith("Hello!")


def test_two_slashes_send_a_line_to_the_model(chat):
    assert "do not understand '/etc/hosts is strange'" in chat("//etc/hosts is strange")


def test_backslash_continues_a_line(chat, tmp_path):
    chat("remember: one\\", "and two")
    with stored(tmp_path) as talk:
        assert talk.history()[0].message.text == "remember: one\nand two"


def test_shell_command_needs_approval(chat, folder):
    out = chat("run touch made", "y", "run touch other", "never do that", "run touch third", "", tools="shell")
    assert "  ? run_command touch made\n    allow it? [y/N/always, or why not] y\n  * run_command touch made" in out
    assert "  ! run_command touch other  The user did not allow this call of run_command: never do that" in out
    assert "  ! run_command touch third  The user did not allow this call" in out
    assert (folder / "made").exists()
    assert not (folder / "other").exists()
    assert not (folder / "third").exists()


def test_shell_command_does_not_run_at_the_end_of_input(chat, folder):
    chat("run touch made", tools="shell")
    assert not (folder / "made").exists()


def test_option_yes_approves_every_call(chat, folder):
    assert "allow it?" not in chat("run touch made", tools="shell", yes=True)
    assert (folder / "made").exists()


def test_limit_ends_the_answer_and_not_the_chat(chat):
    out = chat("tour", "hello", **{"limit-turns": 3})
    assert "  Stopped: the answer reached the limit of model calls. /resume continues it." in out
    assert "Hello!" in answers(out)[1]


def test_system_prompt_comes_from_an_option_or_a_file(chat, tmp_path):
    prompt = tmp_path / "prompt.md"
    prompt.write_text("Be brief. " * 100, encoding="utf-8")
    short = chat("hello", "/context", system="Hi.")
    long = chat("hello", "/context", name="b", system=f"@{prompt}")
    assert [int(line.split()[1]) for text in (short, long) for line in text.splitlines() if "  system  " in line][
        1
    ] > 300
    assert "cannot be read from nowhere.md" in chat(system="@nowhere.md", code=2)


def test_json_output_has_one_object_a_line(chat):
    lines = [json.loads(line) for line in chat("read chapter_0.md", "/why 1", "/nope", json=True).splitlines()]
    kinds = [line["event"] for line in lines]
    assert kinds[:6] == ["notice", "waiting", "replied", "called", "answered", "said"]
    assert kinds[-5:] == ["replied", "ended", "context", "notice", "notice"]
    assert lines[4] | {"text": "", "seconds": 0, "id": ""} == {
        "event": "answered",
        "id": "",
        "name": "read_file",
        "state": "ok",
        "text": "",
        "seconds": 0,
    }
    context = next(line for line in lines if line["event"] == "context")
    assert context["tokens"] == sum(context["kinds"].values())


def test_json_output_has_questions(chat):
    lines = [json.loads(line) for line in chat("run true", "y", tools="shell", json=True).splitlines()]
    questions = [(line["name"], line["arguments"]) for line in lines if line["event"] == "question"]
    assert questions == [("run_command", '{"command": "true"}')]


def test_answer_always_allows_a_tool_for_the_chat(chat, folder):
    out = chat("run touch one", "always", "run touch two", "/tools", tools="shell")
    assert out.count("allow it?") == 1
    assert (folder / "two").exists()
    assert "asks you first" not in out


def test_question_shows_a_long_command_in_full(chat):
    hidden = "true " + "# nothing to see " * 60 + "; rm -rf everything"
    assert hidden in chat(f"run {hidden}", "n", tools="shell")


def test_chat_without_a_name_creates_a_conversation(run, tmp_path, monkeypatch):
    store = f"sqlite:///{tmp_path}/c.db"
    for number in (1, 2):
        monkeypatch.setattr(sys, "stdin", io.StringIO("hello\n"))
        out = run("chat", "--model", "demo", "--store", store)[1]
        assert out.startswith(f"chat-{number} with demo, stored in {store}.")


def test_chat_without_a_message_creates_no_conversation(chat, run, tmp_path):
    store = f"sqlite:///{tmp_path}/c.db"
    out = chat("/context", "/model demo", "/fork other", "/resume", "/quit", store=store)
    assert "You are now in other" in out
    assert run("chat", "--list", "--store", store)[1] == f"{store}: 0 conversations\n"
    chat("/fork other", "hello", store=store)
    assert run("chat", "--list", "--store", store)[1].splitlines()[2].startswith("other  2 ")
    assert "There already is a conversation 'other'" in chat("/fork other", store=store)


def test_second_of_two_new_chats_takes_another_name(run, tmp_path, monkeypatch):
    """Neither chat has a name, and neither writes to the conversation of the other one."""
    store = f"sqlite:///{tmp_path}/c.db"

    def lines():
        foveate.open_conversation("chat-1", store=store, window=16_000).append("I was quicker.")
        yield "hello\n"

    expected = lines()
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    monkeypatch.setattr(sys.stdin, "readline", lambda *_: next(expected, ""), raising=False)
    out = run("chat", "--model", "demo", "--store", store)[1]
    assert out.startswith(f"chat-1 with demo, stored in {store}.")
    assert "This conversation is chat-2: another process has created chat-1." in out
    with foveate.open_conversation("chat-1", store=store, window=16_000) as first:
        assert [row.message.text for row in first.history()] == ["I was quicker."]


def test_chat_reports_another_running_agent(chat, tmp_path, monkeypatch):
    def stream(agent, expected):
        raise foveate.errors.ConversationBusy("Another agent is at work.")
        yield

    monkeypatch.setattr(foveate.ChatAgent, "stream", stream)
    assert "Another agent is running in talk. Try again when it has finished." in chat("hello", "/quit", json=True)


def test_list_shows_the_conversations_of_the_store(chat, run, tmp_path):
    chat("hello", "/fork b")
    chat("count to 3", name="a")
    code, out, _ = run("chat", "--list")
    assert code == 0
    assert out.splitlines() == [
        f"sqlite:///{tmp_path}/data/foveate/chats.db: 3 conversations",
        "name  messages  newest message",
        "a     2         1 2 3.",
        "b     2         Hello! Try `what is in this folder`, or `tour`. `help` list…",
        "talk  2         Hello! Try `what is in this folder`, or `tour`. `help` list…",
        "",
    ]


def test_chat_stores_in_a_file_or_a_url(chat, tmp_path):
    chat("hello", store=str(tmp_path / "mine.db"))
    assert "2 messages" in chat(store=f"sqlite:///{tmp_path}/mine.db")


def test_list_as_json_has_an_object_for_each_conversation(chat, run, tmp_path):
    chat("hello", store=str(tmp_path / "mine.db"))
    _, out, _ = run("chat", "--list", "--json", "--store", tmp_path / "mine.db")
    assert [json.loads(line)["messages"] for line in out.splitlines()] == [2]


def test_list_creates_no_conversation(run, tmp_path, monkeypatch):
    store = f"sqlite:///{tmp_path}/c.db"
    assert run("chat", "--list", "--store", store)[1] == f"{store}: 0 conversations\n"
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "share"))
    assert run("chat", "--list")[1] == f"sqlite:///{tmp_path}/share/foveate/chats.db: 0 conversations\n"
    assert list(tmp_path.iterdir()) == []


def test_list_reads_a_store_that_cannot_be_written(chat, run, tmp_path, monkeypatch):
    """For a superuser all files are writable, so the store is opened for reading."""
    store = tmp_path / "mine.db"
    chat("hello", store=str(store))
    monkeypatch.setattr(os, "access", lambda path, mode, **_: mode != os.W_OK)
    opened: list[str] = []
    monkeypatch.setattr(opening, "open_store", lambda url: opened.append(url) or open_store(url))
    assert run("chat", "--list", "--store", store)[1].splitlines()[2].split()[:2] == ["talk", "2"]
    assert opened == [f"sqlite:///{store}?read_only=on"]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (
            {"model": ""},
            "A new conversation needs a model: --model anthropic:claude-haiku-4-5, or --model demo without a key.",
        ),
        ({"model": "nobody"}, "Model 'nobody' is unknown."),
        ({"model": "openai:what-is-this"}, "The window of openai:what-is-this is not known."),
        ({"tools": "files,knives"}, "There are no tools knives. Known: files, search, shell and none."),
        ({"policy": "no-such"}, "no-such"),
        ({"store": "mysql://x"}, "There is no store 'mysql://x'."),
        ({"name": " "}, "The conversation has an empty name."),
        ({"window": 0}, "window="),
        ({"limit-turns": 0}, "The limit turns must be a number above 0"),
        ({"window": 100}, "Window must be at least 1,000 tokens, not 100."),
        ({"window": 1000}, "Window of 1,000 tokens is too small: the system prompt, the tools and the reserve"),
        ({"limit-money": 1}, "--limit-money needs the price of demo, which is unknown. Leave it out; --limit-tokens"),
    ],
)
def test_wrong_options_are_refused_before_the_chat_starts(chat, options, expected):
    err = chat("hello", code=2, **options)
    assert err.startswith("foveate: ")
    assert expected in err
    assert "Traceback" not in err


def test_missing_folder_is_refused(run, tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.StringIO("hello\n"))
    code, _, err = run("chat", "--model", "demo", "--folder", tmp_path / "no", "--store", "memory:")
    assert code == 2
    assert f"There is no folder '{tmp_path}/no'" in err


def test_settings_choose_the_store_and_the_window(run, tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.StringIO("hello\n"))
    monkeypatch.setenv("FOVEATE_STORE", f"sqlite:///{tmp_path}/mine.db")
    monkeypatch.setenv("FOVEATE_WINDOW", "9000")
    code, out, _ = run("chat", "--model", "demo")
    assert code == 0
    assert f"stored in sqlite:///{tmp_path}/mine.db." in out
    assert " of 9,000 (" in out


def test_resume_continues_a_stopped_answer(chat):
    out = chat("tour", "/resume", "/history 4", **{"limit-turns": 3})
    assert out.count("  Stopped: the answer reached the limit of model calls. /resume continues it.") == 2
    assert out.count("A tour. First") == 1
    again = chat("/resume", "/resume")
    assert "The last answer is not complete. Type /resume to continue it." in again
    assert "The tour is complete: 6 files" in answers(again)[0]
    assert answers(again)[1] == "There is nothing to resume: the last answer is complete."
    assert answers(chat("/resume", name="new")) == [answers(again)[1]]


def test_tools_that_write_need_approval(folder, tmp_path):
    assert {tool.name: tool.needs_approval for tool in opening.read_tools("files,search,shell", folder)} == {
        "list_files": False,
        "read_file": False,
        "write_file": True,
        "edit_file": True,
        "search_files": False,
        "run_command": True,
    }


@pytest.mark.parametrize(
    ("model", "variable"), [("anthropic:claude-haiku-4-5", "ANTHROPIC_API_KEY"), ("openai:gpt-4.1", "OPENAI_API_KEY")]
)
def test_missing_key_is_one_sentence(chat, run, monkeypatch, model, variable):
    for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    err = chat("hello", model=model, code=2)
    assert err.startswith(f"foveate: {model} needs a key, and {variable} is not set.")
    assert err.rstrip().endswith(f"export {variable}=YOUR_KEY, or use the model demo, which needs no key.")
    assert len(err.splitlines()) == 1
    assert chat(model=model, code=2) == err  # Before the first message.
    assert run("chat", "--list")[1].endswith(": 0 conversations\n")
    out = answers(chat(f"/model {model}", "hello"))
    assert out[0] == err.strip().removeprefix("foveate: ")
    assert out[1].startswith("Hello!")


def test_limit_of_money_names_the_missing_extra(chat, monkeypatch):
    monkeypatch.setitem(sys.modules, "genai_prices", None)
    err = chat("hello", model="anthropic:claude-haiku-4-5", code=2, **{"limit-money": 1})
    assert 'needs: pip install "foveate[prices]".' in err


@pytest.mark.parametrize("package", ["anthropic", "openai"])
def test_missing_package_is_one_sentence(chat, monkeypatch, package):
    monkeypatch.setitem(sys.modules, package, None)
    model = {"anthropic": "anthropic:claude-haiku-4-5", "openai": "openai:gpt-4.1"}[package]
    err = chat("hello", model=model, code=2)
    assert f"foveate[{package}]" in err
    assert len(err.splitlines()) == 1
    assert f"foveate[{package}]" in answers(chat("hello", f"/model {model}"))[1]


def test_default_store_is_in_the_data_folder(monkeypatch, tmp_path):
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(opening.sys, "platform", "linux")
    assert opening.default_store() == f"sqlite:///{tmp_path}/.local/share/foveate/chats.db"
    monkeypatch.setattr(opening.sys, "platform", "darwin")
    assert opening.default_store() == f"sqlite:///{tmp_path}/Library/Application Support/foveate/chats.db"
