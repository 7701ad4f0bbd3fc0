"""References of calls to earlier messages, and their sources."""

from __future__ import annotations

import pytest

from foveate.core.messages import Message, ToolCall, assistant, system, tool_result, user
from foveate.replay.references import References, UsedReferences, call_lines, identifiers, whole_lines

NOTHING = UsedReferences({}, {}, {})


def read(*messages: Message) -> list[UsedReferences]:
    references = References()
    return [references.read(message) for message in messages]


def call(arguments: str, name: str = "run") -> Message:
    return assistant("", ToolCall("c", name, arguments))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("see src/app.py now", {"src/app.py"}),
        ("the word Capital is no identifier", set()),
        ("nor ALLCAPS nor lowercase", set()),
        ("camelCase snake_case v1.2.34", {"camelCase", "snake_case", "v1.2.34"}),
        ("(./run.sh), -#@deadbeef1-", {"run.sh", "deadbeef1"}),
        ("a1b2c short", set()),
        ("a" * 119 + "1" + "b" * 5, {"a" * 119 + "1"}),
        ("x_" * 90, {"x_" * 59 + "x", "x_" * 29 + "x"}),
        ("grüße_welt", {"e_welt"}),
        ("", set()),
    ],
)
def test_identifiers_are_sequences_that_look_like_names(text, expected):
    assert identifiers(text) == expected


def test_whole_lines_lose_spaces_and_the_line_numbers_of_viewers():
    text = "\n".join(
        [
            "    return compute_the_answer(question)  ",
            "  12→    for item in everything_there_is:",
            "13\t    while not finished_with_it():",
            "14| elif something_else_entirely(x):",
            "15:  a line as grep prints its matches",
            "  16  a number without a mark is content",
            "short",
            "17→too short without number",
        ]
    )
    assert whole_lines(text) == {
        "return compute_the_answer(question)",
        "for item in everything_there_is:",
        "while not finished_with_it():",
        "elif something_else_entirely(x):",
        "a line as grep prints its matches",
        "16  a number without a mark is content",
    }


def test_lines_are_found_at_any_depth_of_the_arguments():
    arguments = '{"edits": [{"old": "first line, twenty-five long\\nx"}, ["second line, twenty-five long"]], "n": 1}'
    assert call_lines([ToolCall("c", "edit", arguments)]) == {
        "first line, twenty-five long",
        "second line, twenty-five long",
    }


@pytest.mark.parametrize("arguments", ["{broken, but long enough for a line", "[" * 100_000 + "long enough for a line"])
def test_arguments_that_are_not_json_count_as_one_text(arguments):
    assert call_lines([ToolCall("c", "edit", arguments)]) == {arguments}


def test_references_are_grouped_by_their_source():
    line = "def compute_the_answer(question):"
    used = read(
        system("Work in /home/agent/project."),
        user("Fix ticket ABC-1234."),
        call('{"path": "src/app.py"}', "read_file"),
        tool_result("c", f"  7→{line}\nsee also src/util.py"),
        call('{"path": "src/util.py", "old": "def compute_the_answer(question):", "ticket": "ABC-1234"}', "read_file"),
    )
    assert used == [NOTHING, NOTHING, NOTHING, NOTHING, used[4]]
    assert used[4] == UsedReferences(
        recall={"compute_the_answer": (4,), "src/util.py": (4,)},
        said={"ABC-1234": (2,), "read_file": (3,)},
        quoted={line: (4,)},
    )


def test_a_reference_names_every_message_that_held_it():
    used = read(tool_result("a", "the id is x-17-b"), tool_result("b", "again x-17-b"), call('{"id": "x-17-b"}'))
    assert used[2] == UsedReferences({"x-17-b": (1, 2)}, {}, {})


def test_content_from_both_a_result_and_a_person_counts_for_neither():
    used = read(user("open x-17-b"), tool_result("a", "the id is x-17-b"), call('{"id": "x-17-b"}'))
    assert used[2] == NOTHING


def test_content_of_a_call_counts_as_said_from_then_on():
    used = read(tool_result("a", "the id is x-17-b"), call('{"id": "x-17-b"}'), call('{"id": "x-17-b"}'))
    assert used[1:] == [UsedReferences({"x-17-b": (1,)}, {}, {}), NOTHING]


def test_a_line_in_the_assistants_prose_is_not_a_source():
    line = "a whole line of some file, verbatim"
    used = read(tool_result("a", line), assistant(line), call(f'{{"old": "{line}"}}'), call(f'{{"old": "{line}"}}'))
    assert used[2:] == [UsedReferences({}, {}, {line: (1,)}), NOTHING]


def test_texts_of_the_same_message_are_not_a_source():
    used = read(user("hello"), assistant("Now open x-17-b.", ToolCall("c", "open", '{"id": "x-17-b"}')))
    assert used[1] == NOTHING


def test_a_name_that_occurs_only_after_a_tab_is_escaped():
    references = References()
    references.read(call(r'{"new": "\tsourceRepo = a_name"}'))
    used = references.read(call(r'{"old": "\tsourceRepo = a_name"}'))
    assert (set(used.said), used.escaped) == ({"tsourceRepo", "a_name"}, {"tsourceRepo"})


def test_a_word_that_begins_like_an_escape_is_not_escaped():
    references = References()
    references.read(user("tests/test_it.py \\tests/test_it.py"))
    used = references.read(call('{"path": "tests/test_it.py"}'))
    assert (set(used.said), used.escaped) == ({"tests/test_it.py"}, frozenset())
