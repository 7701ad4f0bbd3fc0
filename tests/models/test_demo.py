"""The demo model with real tools, in both formats; all its requests are legal."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import foveate
from foveate import ChatAgent, Conversation, ToolCall, assistant, tool_result, user
from foveate.agents.result_content import failure_text
from foveate.agents.toolbox import files, search, shell
from foveate.errors import BadSetting
from foveate.models.demo import DemoModel, demo_model
from foveate.ports import Delta, StreamEnd
from foveate.testing.bodies import BodyChecker

FORMATS = ("openai", "anthropic")
ROOT = Path(__file__).resolve().parent.parent.parent


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Eight files of about 300 lines each, in two folders."""
    for number in range(8):
        place = tmp_path / ("notes" if number % 2 else ".") / f"chapter_{number}.md"
        place.parent.mkdir(exist_ok=True)
        place.write_text(f"# Chapter {number}\n" + f"The ship of chapter_{number} sails on.\n" * 300, encoding="utf-8")
    return tmp_path


class Talk:
    """A conversation with the demo and real tools of a folder. It checks every request as the provider would."""

    def __init__(self, folder: Path, format: str = "openai", window: int = 50_000, kinds: tuple[Callable, ...] = ()):
        self.model = demo_model(format, window=window)
        kinds = kinds or (files, search, lambda where: shell(where, needs_approval=False))
        self.tools = {tool.name: tool for kind in kinds for tool in kind(folder)}
        self.chat: Conversation = foveate.open_conversation("c", format=format, window=window, expand=True)
        self.checker = BodyChecker(format)
        self.calls: list[ToolCall] = []

    def ask(self, text: str) -> str:
        """Return the demo's last text."""
        self.chat.append(text)
        for _ in range(100):
            body = self.chat.prompt(tools=[tool.wire(self.chat.format.name) for tool in self.tools.values()])
            assert self.checker.check(body) == []
            self.chat.record(self.model.complete(body))
            newest = [row.message for row in self.chat.history() if row.message.role == "assistant"][-1]
            self.calls += newest.calls
            if not newest.calls:
                return newest.text
            for call in self.chat.open_calls():
                self.chat.append(self.result(call))
        raise AssertionError("The demo does not come to an end.")

    def result(self, call: ToolCall) -> Any:
        tool = self.tools[call.name]
        try:
            return tool_result(call.call_id, str(tool.call(**tool.arguments(call.arguments))))
        except Exception as error:
            return tool_result(call.call_id, failure_text(call.name, error), state="error")


@pytest.mark.parametrize("format", FORMATS)
def test_the_demo_uses_the_tools_of_the_request(folder, format, monkeypatch):
    monkeypatch.setattr(socket, "socket", None)  # The demo is offline.
    talk = Talk(folder, format)
    reply_text = talk.ask("What is in this folder?")
    assert "4 files and 1 folder: notes/, chapter_0.md, chapter_2.md" in reply_text
    assert talk.ask("read chapter_0.md").startswith("chapter_0.md has 301 lines. It begins:\n\n    # Chapter 0\n")
    assert "'chapter_5' is in 101 lines in 1 file" in talk.ask("find chapter_5").replace("100 lines", "101 lines")
    assert "It printed:\n\n    hello" in talk.ask("run echo hello")
    names = [call.name for call in talk.calls]
    assert names == ["list_files", "read_file", "search_files", "run_command"]


@pytest.mark.parametrize("format", FORMATS)
def test_a_tour_overflows_a_small_window_and_expands_a_shrunk_result(folder, format):
    talk = Talk(folder, format, window=12_000)
    reply_text = talk.ask("tour")
    assert reply_text.startswith("The tour is complete: 8 files")
    reads = [call.arguments for call in talk.calls if call.name == "read_file"]
    assert len(reads) == len(set(reads)) == 8
    assert talk.calls[-1].name == "expand"
    context = talk.chat.context()
    assert context.tokens < 12_000 < context.tokens_whole
    assert context.saved > 0


@pytest.mark.parametrize("format", FORMATS)
def test_the_tour_repeats_no_call_and_recovers_its_plan(format):
    """A fold hides the plan before the tour is over. The demo once listed the files again, eight times."""
    talk = Talk(ROOT / "examples" / "sample_project", format, window=16_000, kinds=(files, search))
    assert "The expanded text ends with `return " in talk.ask("tour")
    assert talk.chat.context().tokens < 16_000 < 29_000 < talk.chat.context().tokens_whole
    work = [(call.name, call.arguments) for call in talk.calls]
    assert len(work) == len(set(work)) > 35
    assert [name for name, _ in work].count("list_files") == 1
    plan, question = (json.loads(arguments) for name, arguments in work if name == "expand")
    assert plan == {"handle": "m4"}
    assert question.keys() == {"handle", "lines"}
    assert talk.chat.history(4, 4)[0].message.text.startswith("My plan for 20 files: CHANGES.md, README.md, ")


@pytest.mark.parametrize("format", FORMATS)
def test_the_demo_refuses_a_prompt_beyond_its_window(folder, format):
    """The same tour without foveate ends at the window."""
    with ChatAgent(
        demo_model(format, window=12_000), tools=[*files(folder), *search(folder)], policy="off", conversation="c"
    ) as agent:
        with pytest.raises(foveate.errors.Refused, match=r"prompt is too long: 1\d,\d{3} tokens > 12,000 maximum"):
            agent.send("tour")
        reads = [call for row in agent.conversation.history() for call in row.message.calls if call.name == "read_file"]
        assert 2 < len(reads) < 8


def test_a_tour_of_one_file_counts_to_one(tmp_path):
    (tmp_path / "only.md").write_text("# Alone\n\nhere\n")
    assert Talk(tmp_path).ask("tour").startswith("The tour is complete: one file, read and searched for. ")


def test_the_tour_of_a_folder_without_files_ends_at_once(tmp_path):
    assert Talk(tmp_path).ask("tour").startswith("There are no files here that I can read.")


def test_the_demo_finds_inputs_that_a_summary_hides(folder):
    talk = Talk(folder)
    assert "the port is 8080" in talk.ask("remember: the port is 8080")
    assert talk.ask("what did I say about the port?") == "You said: remember: the port is 8080"
    first = talk.chat.view.entries[0].id
    talk.chat.edit(foveate.edits.Hide(foveate.edits.Target(first)))
    assert "8080" in talk.ask("what did I say about port 8080")
    assert [call.name for call in talk.calls] == ["expand"]


def test_the_demo_invents_no_inputs(folder):
    assert (
        Talk(folder).ask("what did I say about whales")
        == "You have not said anything about whales, as far as I can see."
    )


@pytest.mark.parametrize(
    ("asked", "reply_text"),
    [
        ("read nothing.md", "I could not read it: There is no file"),
        ("read ../secret", "I could not read it: ../secret is outside"),
        ("find zebra", "No file in this folder contains 'zebra'."),
        ("run false", "It printed:\n\n    [exit code 1"),
        ("show m99", "I could not expand it: "),
        ("write me a poem", "I am only a demo and do not understand 'write me a poem'."),
        ("hello", "Hello! "),
        ("help", "I am foveate's demo: a small program"),
        ("count to 5", "1 2 3 4 5."),
    ],
)
def test_the_demo_reports_failures(folder, asked, reply_text):
    assert Talk(folder).ask(asked).startswith(reply_text)


def test_a_tour_without_search_only_reads_files(folder):
    talk = Talk(folder, kinds=(files,))
    assert talk.ask("tour").startswith("The tour is complete: 8 files")
    assert {call.name for call in talk.calls} <= {"list_files", "read_file", "expand"}


def test_without_tools_the_demo_names_the_missing_ones(tmp_path):
    talk = Talk(tmp_path, kinds=(lambda folder: (),))
    assert talk.ask("read a.md") == "I have no tool for that. Start the chat with --tools files."
    assert talk.ask("find a") == "I have no tool for that. Start the chat with --tools search."
    assert talk.ask("run ls") == "I have no tool for that. Start the chat with --tools shell."


@pytest.mark.parametrize("format", FORMATS)
def test_the_pieces_of_a_stream_make_the_whole_answer(format):
    model = demo_model(format)
    stream = model.stream({"messages": [{"role": "user", "content": "help"}]})
    pieces = list(stream)
    whole = model.complete({"messages": [{"role": "user", "content": "help"}]})
    read = foveate.open_conversation("c", format=format, window=10_000).format.parse_reply
    assert isinstance(pieces[-1], StreamEnd)
    assert len(pieces) > 50
    assert read(pieces[-1].response)[0] == read(whole)[0]
    assert "".join(piece.text for piece in pieces[:-1] if isinstance(piece, Delta)) == read(whole)[0].text
    assert stream.partial() == read(whole)[0]


def test_the_same_conversation_gets_the_same_answers(folder):
    def responses() -> list[bytes]:
        talk = Talk(folder)
        talk.ask("tour")
        return [foveate.core.wire.encode_message(row.message) for row in talk.chat.history()]

    assert responses() == responses()


def test_call_ids_are_unique_in_a_conversation(folder):
    talk = Talk(folder)
    for asked in ("ls", "ls", "tour", "read chapter_0.md", "read chapter_0.md"):
        talk.ask(asked)
    ids = [call.call_id for call in talk.calls]
    assert len(ids) == len(set(ids)) > 18


def test_the_unchanged_beginning_is_billed_as_cached():
    chat, model = foveate.open_conversation("c", format="anthropic", window=10_000), DemoModel("anthropic")
    usages = []
    for text in ("hello", "hello again", "help"):
        chat.append(text)
        usages.append(chat.format.parse_reply(reply := model.complete(chat.prompt(system="s" * 400)))[1])
        chat.record(reply)
    assert usages[0].cache_read == 0
    assert all(usage.cache_write > 10 for usage in usages)
    assert all(later.cache_read >= one.cache_read + one.cache_write for one, later in pairwise(usages))


def test_a_note_in_a_user_message_is_not_an_input():
    wire = foveate.open_conversation("c", window=10_000).format.render
    reply_text = [user("hello"), assistant("Hello!"), user("count to 3"), user("[a plugin's note]")]
    reply = demo_model().complete({"messages": wire(reply_text)})
    assert reply["choices"][0]["message"]["content"] == "1 2 3."


def test_an_agent_accepts_the_name_demo(folder):
    with foveate.ChatAgent("demo", tools=files(folder), expand=True) as agent:
        assert agent.send("read chapter_0.md").text.startswith("chapter_0.md has 301 lines.")
        assert agent.conversation.budget.window == 16_000


def test_an_async_agent_accepts_the_name_demo():
    async def ask() -> str:
        async with foveate.AsyncChatAgent("demo") as agent:
            return (await agent.send("count to 3")).text

    assert asyncio.run(ask()) == "1 2 3."


@pytest.mark.parametrize("wrong", [{"format": "gemini"}, {"pace": -1}, {"pace": True}])
def test_invalid_settings_of_the_demo_are_refused(wrong):
    with pytest.raises(BadSetting):
        demo_model(**wrong)
