"""Claude Code sessions: the lines of the conversation, and the counts of the others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from recorded_samples import PIXEL, Session, call, text, write_lines

from foveate.core.messages import Extra, Media, Message, Reasoning, Text, ToolCall, ToolResult, assistant, user
from foveate.core.messages import tool_result as answer
from foveate.core.stamps import Usage
from foveate.errors import BadTranscript
from foveate.replay.recordings import read_recording, sniff
from foveate.replay.recordings.recording import RecordedMessage, Recording
from foveate.replay.recordings.tree import Node, unravel

BILLED = Usage(input=3, cache_read=100, cache_write=20, output=7)


def read(path: Path, session: Session, **options: Any) -> Recording:
    return read_recording(write_lines(path / "s1.jsonl", *session.lines), **options)


def messages_of(recording: Recording) -> list[Message]:
    return [entry.message for entry in recording.messages]


def short_form(recording: Recording) -> list[str]:
    """Return each message in a few words: its text, and the calls it makes or answers."""
    return [
        " ".join(
            [entry.message.role[0], *[f"{call.call_id}?" for call in entry.message.calls]]
            + ([f"{result.call_id}!"] if (result := entry.message.result) else [])
            + ([entry.message.text] if entry.message.text else [])
        )
        for entry in recording.messages
    ]


def test_a_session_is_read_with_its_times_usage_and_ids(tmp_path: Path) -> None:
    session = Session()
    session.user("Why?")
    session.reply("m1", {"type": "thinking", "thinking": "Hm.", "signature": "sig"}, output=1)
    session.reply("m1", text("Let me look."), output=2)
    session.reply("m1", call("c1", command="ls"))
    session.result("c1", "a.py")
    session.reply("m2", text("Because."))
    recording = read(tmp_path, session)
    thought = Reasoning("Hm.", "sig", format="anthropic")
    start = 1767323040500
    assert recording == Recording(
        path=str(tmp_path / "s1.jsonl"),
        format="claude_code",
        messages=(
            RecordedMessage(user("Why?"), 1, start + 1000, None, "u1"),
            RecordedMessage(
                assistant("Let me look.", ToolCall("c1", "Bash", '{"command":"ls"}'), reasoning=thought),
                2,
                start + 2000,
                BILLED,
                "m1",
            ),
            RecordedMessage(answer("c1", "a.py"), 5, start + 5000, None, "u5"),
            RecordedMessage(assistant("Because."), 6, start + 6000, BILLED, "m2"),
        ),
        model="claude-x",
        name="s1",
        provider="anthropic",
    )
    assert recording.notes_text() == ""


def test_parallel_calls_fork_the_tree_without_a_rewind(tmp_path: Path) -> None:
    """Each result follows its own call, and only the last one continues the tree: the others still belong."""
    session = Session()
    session.user("Look at three files.")
    first = session.reply("m1", call("c1"))
    second = session.reply("m1", call("c2"))
    third = session.reply("m1", call("c3"))
    session.add("progress", data={"type": "hook_progress"}, after=first)
    session.result("c2", "two", after=second)
    session.add("attachment", attachment={"type": "hook_success"})
    session.result("c1", "one", after=first)
    session.result("c3", "three", after=third)
    session.reply("m2", text("Done."))
    recording = read(tmp_path, session)
    assert short_form(recording) == [
        "u Look at three files.",
        "a c1? c2? c3?",
        "t c2! two",
        "t c1! one",
        "t c3! three",
        "a Done.",
    ]
    assert (recording.notes, recording.branches) == ({"other lines": 2}, ())


def test_a_call_after_the_result_of_its_sibling_keeps_its_response(tmp_path: Path) -> None:
    session = Session()
    session.user("Go.")
    first = session.reply("m1", call("c1"))
    session.result("c1", "one", after=first)
    second = session.reply("m1", call("c2"), after=first)
    session.result("c2", "two", after=second)
    session.reply("m2", text("Done."))
    recording = read(tmp_path, session)
    assert short_form(recording) == ["u Go.", "a c1? c2?", "t c1! one", "t c2! two", "a Done."]
    assert recording.notes == {}


@pytest.mark.parametrize("leads_on", ["c1", "c2"])
def test_any_result_of_a_batch_may_have_the_next_message(tmp_path: Path, leads_on: str) -> None:
    session = Session()
    session.user("Go.")
    lines = {"c1": session.reply("m1", call("c1"))}
    lines["c2"] = session.reply("m1", call("c2"))
    results = {name: session.result(name, f"of {name}", after=line) for name, line in lines.items()}
    session.reply("m2", text("Done."), after=results[leads_on])
    recording = read(tmp_path, session)
    assert short_form(recording) == ["u Go.", "a c1? c2?", "t c1! of c1", "t c2! of c2", "a Done."]
    assert recording.branches == ()


def test_program_texts_after_a_result_off_the_path_stay(tmp_path: Path) -> None:
    session = Session()
    session.user("Use both skills.")
    first = session.reply("m1", call("c1", "Skill"))
    session.result("c1", "Launching.", after=first)
    session.user([text("How the first skill works.")], isMeta=True)
    second = session.reply("m1", call("c2", "Skill"), after=first)
    session.result("c2", "Launching.", after=second)
    session.user([text("How the second skill works.")], isMeta=True)
    recording = read(tmp_path, session)
    assert short_form(recording) == [
        "u Use both skills.",
        "a c1? c2?",
        "t c1! Launching.",
        "u How the first skill works.",
        "t c2! Launching.",
        "u How the second skill works.",
    ]
    assert recording.notes == {}


def test_an_abandoned_reply_is_a_branch(tmp_path: Path) -> None:
    session = Session()
    asked = session.user("Go.")
    given_up = session.reply("m1", call("c1"))
    session.result("c1", "one", after=given_up)
    session.reply("m2", call("c1"), after=asked)
    session.result("c1", "two")
    recording = read(tmp_path, session)
    assert short_form(recording) == ["u Go.", "a c1?", "t c1! two"]
    assert [short_form(branch) for branch in recording.branches] == [["a c1?", "t c1! one"]]


def test_a_second_answer_to_a_call_is_a_branch(tmp_path: Path) -> None:
    session = Session()
    session.user("Go.")
    asked = session.reply("m1", call("c1"))
    session.result("c1", "one", after=asked)
    session.result("c1", "two", after=asked)
    recording = read(tmp_path, session)
    assert (short_form(recording)[2:], [short_form(branch) for branch in recording.branches]) == (
        ["t c1! two"],
        [["t c1! one"]],
    )


def test_messages_left_behind_by_a_rewind_are_a_branch(tmp_path: Path) -> None:
    session = Session()
    session.user("Hi.")
    here = session.reply("m1", text("Hello."))
    session.user("Delete it.")
    session.reply("m2", call("c1"))
    session.result("c1", "gone")
    session.reply("m3", text("Deleted."))
    session.user("No: keep it.", after=here)
    session.reply("m4", text("Kept."))
    recording = read(tmp_path, session)
    assert short_form(recording) == ["u Hi.", "a Hello.", "u No: keep it.", "a Kept."]
    assert [short_form(branch) for branch in recording.branches] == [
        ["u Delete it.", "a c1?", "t c1! gone", "a Deleted."]
    ]
    assert recording.notes == {"rewound lines": 4}
    assert recording.notes_text() == "4 rewound lines"


def test_a_rewind_to_the_start_makes_the_first_attempt_a_branch(tmp_path: Path) -> None:
    session = Session()
    session.user("First.")
    session.reply("m1", text("One."))
    session.user("Second.", after=None)
    session.reply("m2", text("Two."))
    recording = read(tmp_path, session)
    assert (short_form(recording), [short_form(each) for each in recording.branches]) == (
        ["u Second.", "a Two."],
        [["u First.", "a One."]],
    )


def test_rewinds_within_rewinds_are_branches_in_order(tmp_path: Path) -> None:
    session = Session()
    root = session.user("Root.")
    session.user("A.", after=root)
    inner = session.reply("m1", text("On A."))
    session.user("A1.", after=inner)
    session.user("A2.", after=inner)
    session.user("B.", after=root)
    session.user("C.", after=root)
    recording = read(tmp_path, session)
    assert short_form(recording) == ["u Root.", "u C."]
    assert [short_form(branch) for branch in recording.branches] == [["u A.", "a On A.", "u A2."], ["u A1."], ["u B."]]


def test_side_chains_are_separate_recordings(tmp_path: Path) -> None:
    """Named by their agent, or in older versions by their first line."""
    session = Session()
    session.user("Send two agents.")
    session.reply("m1", call("c1", "Task"), call("c2", "Task"))
    old = session.user("Find it.", isSidechain=True, after=None)
    session.reply("m9", text("Found."), isSidechain=True, after=old)
    session.user("Test it.", isSidechain=True, agentId="tester", after=None)
    session.reply("m8", call("x1"), isSidechain=True, agentId="tester", after="u5")
    session.result("c1", "Found.")
    session.result("c2", "Tested.")
    session.reply("m2", text("Both are back."))
    recording = read(tmp_path, session)
    assert short_form(recording) == [
        "u Send two agents.",
        "a c1? c2?",
        "t c1! Found.",
        "t c2! Tested.",
        "a Both are back.",
    ]
    assert [(chain.name, short_form(chain), chain.notes) for chain in recording.side_chains] == [
        ("u3", ["u Find it.", "a Found."], {}),
        ("tester", ["u Test it.", "a x1?"], {"interrupted calls": 1}),
    ]
    assert recording.notes == {"side-chain lines": 4}


def test_a_sub_agents_messages_passed_on_as_progress_are_a_side_chain(tmp_path: Path) -> None:
    session = Session()
    session.user("Explore.")
    session.reply("m1", call("c1", "Task"))
    for number, (role, content) in enumerate(
        [("user", [text("Look around.")]), ("assistant", [call("x1")]), ("user", [text("And there.")])]
    ):
        passed = {"type": role, "uuid": f"p{number}", "message": {"role": role, "content": content}}
        session.add("progress", data={"type": "agent_progress", "agentId": "scout", "message": passed}, after="u2")
    session.result("c1", "A map.", after="u2")
    recording = read(tmp_path, session)
    assert short_form(recording) == ["u Explore.", "a c1?", "t c1! A map."]
    assert [(chain.name, short_form(chain)) for chain in recording.side_chains] == [
        ("scout", ["u Look around.", "a x1?", "u And there."])
    ]
    assert recording.notes == {"side-chain lines": 3}


def test_side_chains_in_the_sessions_folder_are_read_with_it(tmp_path: Path) -> None:
    agent = Session(isSidechain=True, agentId="a7")
    agent.user("Count.")
    agent.reply("m5", text("Three."))
    (tmp_path / "s1" / "subagents").mkdir(parents=True)
    beside = write_lines(tmp_path / "s1" / "subagents" / "agent-a7.jsonl", *agent.lines)
    (tmp_path / "s1" / "subagents" / "agent-a8.jsonl").touch()
    session = Session()
    session.user("Have it counted.")
    # Passed on as progress too: it is the same side chain, and the file holds all of it.
    passed = {"type": "user", "uuid": "p1", "message": {"role": "user", "content": "Count."}}
    session.add("progress", data={"type": "agent_progress", "agentId": "a7", "message": passed})
    recording = read(tmp_path, session)
    assert short_form(recording) == ["u Have it counted."]
    assert recording.side_chains == (read_recording(beside),)
    assert recording.side_chains[0].side_chains == ()
    assert (recording.side_chains[0].name, short_form(recording.side_chains[0])) == ("a7", ["u Count.", "a Three."])
    assert recording.notes == {"side-chain lines": 3}
    with beside.open("ab") as file:
        file.write(b'{"torn')
    with pytest.raises(BadTranscript, match=r"agent-a7\.jsonl, line 3: the last line is cut off"):
        read(tmp_path, session)
    assert read(tmp_path, session, lenient=True).notes == {"side-chain lines": 3, "damaged lines": 1}


def test_a_native_compaction_keeps_the_messages_before_it(tmp_path: Path) -> None:
    session = Session()
    session.user("Build it.")
    last = session.reply("m1", text("Half done."))
    session.add("system", subtype="compact_boundary", logicalParentUuid=last, after=None, content="Compacted")
    session.user("This session is being continued: half is built.", isCompactSummary=True)
    session.reply("m2", text("The other half."))
    recording = read(tmp_path, session)
    assert short_form(recording) == [
        "u Build it.",
        "a Half done.",
        "u This session is being continued: half is built.",
        "a The other half.",
    ]
    assert [entry.origin for entry in recording.messages] == [None, None, "summary", None]
    assert recording.notes == {"native compactions": 1}


def test_a_compaction_without_a_parent_follows_the_line_before(tmp_path: Path) -> None:
    """Older versions wrote a summary at a new root, without a boundary; others name a line that does not exist."""
    session = Session()
    session.user("Build it.")
    session.reply("m1", text("Half done."))
    words = "This session is being continued from a previous conversation that ran out of context."
    session.user(words, after=None)
    session.add("system", subtype="compact_boundary", logicalParentUuid="nowhere", after=None)
    session.user("Again.", isCompactSummary=True)
    recording = read(tmp_path, session)
    assert short_form(recording) == ["u Build it.", "a Half done.", f"u {words}", "u Again."]
    session.user("And again.", isCompactSummary=True)
    assert recording.notes == {"native compactions": 2}
    assert read(tmp_path, session).notes == {"native compactions": 3}


def test_a_compaction_after_a_rewind_follows_the_kept_messages(tmp_path: Path) -> None:
    session = Session()
    session.user("Build it.")
    kept = session.reply("m1", text("Half done."))
    session.user("Not like that.")
    session.add("system", subtype="compact_boundary", logicalParentUuid=kept, after=None)
    session.user("What was said so far.", isCompactSummary=True)
    recording = read(tmp_path, session)
    assert short_form(recording) == ["u Build it.", "a Half done.", "u What was said so far."]
    assert [short_form(branch) for branch in recording.branches] == [["u Not like that."]]


def test_a_summary_next_to_messages_that_its_compaction_kept_stays(tmp_path: Path) -> None:
    session = Session()
    session.user("Build it.")
    kept = session.reply("m1", text("Half done."))
    session.add("system", subtype="compact_boundary", logicalParentUuid=kept, after=None)
    session.user("What was said so far.", isCompactSummary=True)
    session.user("Go on.", after=kept)
    recording = read(tmp_path, session)
    assert short_form(recording) == ["u Build it.", "a Half done.", "u What was said so far.", "u Go on."]
    assert recording.notes == {"native compactions": 1}


def test_interrupted_calls_are_counted_and_kept(tmp_path: Path) -> None:
    session = Session()
    session.user("Run it.")
    session.reply("m1", call("c1"))
    session.result("c1", "half an output", toolUseResult={"interrupted": True})
    session.reply("m2", call("c2"))
    rejected = "The user doesn't want to proceed with this tool use. The tool use was rejected."
    session.result("c2", rejected, is_error=True)
    session.user([text("[Request interrupted by user for tool use]")])
    session.reply("m3", call("c3"))
    session.result("c3", "no such file", is_error=True)
    session.reply("m4", call("c4"))
    recording = read(tmp_path, session)
    states = [(result.call_id, result.state) for entry in recording.messages if (result := entry.message.result)]
    assert states == [("c1", "interrupted"), ("c2", "interrupted"), ("c3", "error")]
    assert short_form(recording)[-1] == "a c4?"
    assert recording.notes == {"interrupted calls": 3}


def test_images_are_found_in_messages_and_in_results(tmp_path: Path) -> None:
    session = Session()
    session.user([text("See."), PIXEL])
    session.reply("m1", call("c1", "Read"))
    session.result("c1", [text("A picture."), PIXEL, PIXEL])
    recording = read(tmp_path, session)
    image = Media("image/png", "base64", "iVBORw0K")
    assert messages_of(recording)[0] == user("See.", image)
    assert messages_of(recording)[2] == Message("tool", (ToolResult("c1", (Text("A picture."), image, image)),))
    assert recording.notes == {"images": 3}


def test_reused_and_repeated_ids_are_counted(tmp_path: Path) -> None:
    """A repeated call id is another call. A response's id after a user message is another response. A repeated line is
    ignored.
    """
    session = Session()
    session.user("Go.")
    session.reply("m1", call("c1"))
    session.result("c1", "one")
    session.user("Again.")
    session.reply("m1", call("c1"))
    session.result("c1", "two")
    session.result("c9", "nobody asked")
    session.lines.append(session.lines[2])
    session.lines.append({**session.lines[4], "uuid": "copied", "parentUuid": "u7"})
    recording = read(tmp_path, session)
    assert short_form(recording) == [
        "u Go.",
        "a c1?",
        "t c1! one",
        "u Again.",
        "a c1?",
        "t c1! two",
        "t c9! nobody asked",
    ]
    assert recording.notes == {"results without a call": 1, "reused ids": 2, "repeated lines": 2}


def test_texts_of_the_program_are_marked(tmp_path: Path) -> None:
    session = Session()
    session.lines.append({"type": "summary", "summary": "A title", "leafUuid": "u2"})
    session.lines.append({"type": "mode", "mode": "normal", "sessionId": "s1", "message": "not a message at all"})
    session.user("Caveat: none.", isMeta=True)
    session.add("assistant", isApiErrorMessage=True, message={"id": "e", "content": [text("Login expired")]})
    session.reply("m1", call("c1"))
    session.result("c1", "one")
    session.add("attachment", attachment={"type": "queued_command", "prompt": "And hurry.", "commandMode": "prompt"})
    session.add("attachment", attachment={"type": "queued_command", "prompt": "Task done.", "commandMode": "notice"})
    recording = read(tmp_path, session)
    assert [(entry.message.text, entry.origin) for entry in recording.messages] == [
        ("Caveat: none.", "plugin"),
        ("", None),
        ("one", None),
        ("And hurry.", None),
        ("Task done.", "plugin"),
    ]
    assert recording.notes == {"failed replies": 1, "other lines": 2}
    assert recording.notes_text() == "1 failed reply, 2 other lines"


def test_unknown_fields_of_a_block_survive(tmp_path: Path) -> None:
    session = Session()
    session.user("Go.")
    session.reply("m1", {**call("c1"), "caller": {"type": "direct"}})
    caller = Extra("anthropic", '{"caller":{"type":"direct"}}')
    assert messages_of(read(tmp_path, session))[1] == assistant("", ToolCall("c1", "Bash", "{}", extra=caller))


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ({"uuid": 3}, "this does not follow the format: Expected `str | null`, got `int` - at `$.uuid`."),
        ({"message": "Hi."}, "this does not follow the format: Expected `object`, got `str`."),
        ({"message": {"content": [{"type": "text"}]}}, "content[0].text is missing or null. It must be a string."),
    ],
)
def test_a_line_that_does_not_follow_the_format_is_damaged(tmp_path: Path, line: dict[str, Any], problem: str) -> None:
    session = Session()
    session.user("Hi.")
    session.user("Ho.")
    session.lines[1].update(line)
    session.user("Hello?")
    with pytest.raises(BadTranscript) as stopped:
        read(tmp_path, session)
    assert (stopped.value.line, stopped.value.problem) == (2, problem)
    skipped = read(tmp_path, session, lenient=True)
    assert (short_form(skipped), skipped.notes) == (["u Hi.", "u Hello?"], {"damaged lines": 1})


def test_a_line_without_its_parent_follows_the_line_before(tmp_path: Path) -> None:
    session = Session()
    session.user("Hi.")
    session.reply("m1", call("c1"))
    session.result("c1", "one")
    session.reply("m2", text("Done."))
    lines = [*session.lines[:2], b'{"uuid": "u3", "torn', session.lines[3]]
    recording = read_recording(write_lines(tmp_path / "s1.jsonl", *lines), lenient=True)
    assert short_form(recording) == ["u Hi.", "a c1?", "a Done."]
    assert recording.notes == {"interrupted calls": 1, "damaged lines": 1}


def test_a_cycle_of_parents_ends(tmp_path: Path) -> None:
    session = Session()
    session.user("Hi.")
    session.user("Ho.")
    session.lines[0]["parentUuid"] = "u2"
    assert short_form(read(tmp_path, session)) == ["u Hi.", "u Ho."]


def test_a_session_of_settings_alone_is_recognised(tmp_path: Path) -> None:
    lines = [{"type": "file-history-snapshot", "messageId": str(number)} for number in range(100)]
    session = Session()
    session.user("Hi.")
    assert sniff(write_lines(tmp_path / "s1.jsonl", *lines, *session.lines)) == "claude_code"


@given(st.data())
def test_every_node_of_a_tree_is_in_exactly_one_thread(data: st.DataObject) -> None:
    size = data.draw(st.integers(1, 12))
    keys = [str(number) for number in range(size)]
    parent = st.sampled_from([*keys, "", "nowhere"])
    nodes = [Node(n, key, data.draw(parent), None, data.draw(st.booleans())) for n, key in enumerate(keys)]
    joining = data.draw(st.sets(st.sampled_from(keys)))
    threads = unravel(nodes, lambda way: lambda node: node.key in joining)
    placed = [node.number for thread in threads for node in thread]
    assert len(placed) == len(set(placed))
    assert {node.number for node in nodes if node.is_message} <= set(placed)
    assert all([node.number for node in thread] == sorted(node.number for node in thread) for thread in threads)
    newest = max((node.number for node in nodes if node.is_message), default=None)
    assert newest is None or newest in [node.number for node in threads[0]]
