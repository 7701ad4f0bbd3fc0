"""The text of a chat: events in, exact text out."""

from __future__ import annotations

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foveate import Message, Receipt, Text, ToolCall, ToolResult, Usage, assistant
from foveate.agents.events import (
    ModelReplied,
    Outcome,
    ReasoningDelta,
    RunEnded,
    TextDelta,
    ToolAnswered,
    ToolCalled,
    ViewChanged,
)
from foveate.cli.chat.rendering import (
    ChatEvent,
    Notice,
    Question,
    ScreenState,
    Waiting,
    bar,
    bill_table,
    call_summary,
    kind_table,
    render,
    saving_table,
    status,
    waiting_text,
)
from foveate.cli.chat.screen import Pipe, Terminal
from foveate.core.call_context import Prices
from foveate.core.context import Context
from foveate.core.runs import AgentRun
from foveate.core.totals import ModelTotals
from foveate.edits import Hide, Target
from foveate.types import Totals


def text_of(*events: ChatEvent) -> str:
    """Return the text of these events, without styles."""
    state, text = ScreenState(), ""
    for event in events:
        state, pieces = render(state, event)
        text += "".join(piece.text for piece in pieces)
    return text


def styles(*events: ChatEvent) -> list[tuple[str, str]]:
    state, pairs = ScreenState(), []
    for event in events:
        state, pieces = render(state, event)
        pairs += [(piece.text, piece.style) for piece in pieces]
    return pairs


def replied(message: Message) -> ModelReplied:
    return ModelReplied(message, "id", Usage(), 1, 0.5)


def ended(state: str = "done", reason: str = "") -> RunEnded:
    return RunEnded(Outcome("", AgentRun("r", "chat", "c", state=state, reason=reason)))  # type: ignore[arg-type]


READ = ToolCall("c1", "read_file", '{"path": "a.md", "start_line": 3}')
RECEIPT = Receipt(3, 5, 7, 0, "plan", ("fold", "shrink"), (Hide(Target("m")),) * 3, 8_400, 900, 0, 0, ("digest",))
CONTEXT = Context(
    {"system": 1_000, "tools": 1_000, "results": 4_000, "shrunk": 500},
    16_000,
    1_600,
    12,
    40,
    2_000,
    30_000,
    Usage(100, 5_400, 500, 80),
    Totals(
        calls=3,
        calls_billed=3,
        usage=Usage(300, 12_000, 2_000, 100),
        tokens_whole=60_000,
        tokens_sent=10_000,
        by_model={
            "demo": ModelTotals(1, Usage(100, 2_000, 500, 40)),
            "a:b": ModelTotals(2, Usage(200, 10_000, 1_500, 60)),
        },
    ),
    Prices(),
)


def test_answer_with_calls_is_rendered_exactly():
    events = [
        ReasoningDelta("Which file?"),
        ReasoningDelta(" This one."),
        TextDelta("I look"),
        TextDelta(" at it."),
        replied(assistant("I look at it.", READ)),
        ToolCalled(READ),
        ToolAnswered(READ, ToolResult("c1", (Text("x" * 400),)), 0.26),
        ToolAnswered(READ, ToolResult("c1", (Text("There is no\nfile a.md."),), "error"), 0.1),
        ViewChanged(RECEIPT),
        TextDelta("It has\n"),
        TextDelta("400 letters.\n"),
        replied(assistant("It has\n400 letters.\n")),
        ended(),
        CONTEXT,
    ]
    assert text_of(*events) == (
        "Which file? This one.\n"
        "I look at it.\n"
        "  * read_file a.md start_line=3  104 tokens, 0.3 s\n"
        "  ! read_file a.md start_line=3  There is no file a.md.\n"
        "  ~ fold, shrink: 3 edits, 8,400 -> 900 tokens, written by digest; /undo reverts it\n"
        "It has\n"
        "400 letters.\n"
        "  [##########..............] 6,500 of 16,000 (41%): results 4,000, system 1,000, tools 1,000"
        " | cache 90% | cost 4,500, saved 5,000 input tokens\n"
    )


def test_answer_without_a_stream_is_shown_at_its_end():
    assert text_of(replied(assistant("All at once.")), ended()) == "All at once.\n"


def test_streamed_answer_is_not_shown_twice():
    assert text_of(TextDelta("All"), TextDelta(" at once."), replied(assistant("All at once."))) == "All at once.\n"
    assert (
        text_of(TextDelta("First."), replied(assistant("First.")), replied(assistant("Second."))) == "First.\nSecond.\n"
    )


def test_call_of_expand_is_shown():
    call = ToolCall("c", "expand", '{"handle":"m12"}')
    assert text_of(TextDelta("I look."), replied(assistant("I look.", call))) == "I look.\n  * expand m12\n"


def test_waiting_text_is_not_part_of_the_output():
    waited = [Waiting(), ToolCalled(READ), ToolAnswered(READ, ToolResult("c1"), 0.1), ViewChanged(RECEIPT)]
    assert [waiting_text(event) for event in waited] == ["...", "read_file a.md start_line=3 ...", "...", "..."]
    assert [waiting_text(event) for event in (TextDelta("a"), replied(assistant("a")), ended(), Notice("a"))] == [
        ""
    ] * 4
    assert text_of(Waiting(), ToolCalled(READ), Waiting()) == ""


def test_limit_and_failure_are_named():
    assert text_of(ended("stopped", "turns")) == (
        "  Stopped: the answer reached the limit of model calls. /resume continues it.\n"
    )
    assert text_of(TextDelta("Half"), ended("failed", "no answer")) == "Half\n  Failed: no answer\n"


def test_receipt_of_an_undo_offers_no_undo():
    receipt = Receipt(6, 6, 7, 0, "undo", (), (Hide(Target("m")),), 900, 8_400, 0, 0)
    assert text_of(ViewChanged(receipt)) == "  ~ undo: 1 edit, 900 -> 8,400 tokens\n"


def test_receipts_are_dim_and_failures_red():
    assert styles(ReasoningDelta("Hm.")) == [("Hm.", "dim italic")]
    assert styles(ViewChanged(RECEIPT))[0][1] == "dim"
    bad = ToolAnswered(READ, ToolResult("c1", (Text("no"),), "error"), 0.1)
    assert [style for _, style in styles(bad)] == ["red", "", "red"]
    assert styles(Notice("Hear, hear.", "yellow")) == [("Hear, hear.\n", "yellow")]


def test_question_shows_every_argument_and_counts_omissions():
    ask = Question(ToolCall("c", "write_file", '{"path":"a.md","content":"one\\ntwo"}'))
    assert text_of(ask) == "  ? write_file \n      path: a.md\n      content: one\n      two\n"
    long = text_of(Question(ToolCall("c", "run_command", '{"command":"' + "a" * 3_000 + "b" * 3_000 + '"}')))
    assert "[... 2,000 characters omitted ...]" in long
    assert (long.count("a" * 100), long.endswith("b" * 2_000 + "\n")) == (20, True)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ('{"path":"a.md"}', "a.md"),
        ('{"path":"a.md","deep":true,"most":3}', "a.md deep=true most=3"),
        ("{}", ""),
        ("not json", "not json"),
        ("[1, 2]", "[1, 2]"),
        ('{"text":"one\\ntwo"}', "one two"),
        ('{"text":"' + "x" * 200 + '"}', "x" * 71 + "…"),
        ("[" * 3_000, "[" * 71 + "…"),
    ],
)
def test_call_summary_fits_on_a_line(arguments, expected):
    assert call_summary(ToolCall("c", "t", arguments)) == expected


def test_bar_has_a_mark_for_each_part_of_the_window():
    assert list(bar(CONTEXT, 16)) == [("#", "white"), ("#", "bright_black"), ("####", "yellow"), ("." * 10, "dim")]
    assert "".join(text for text, _ in bar(CONTEXT)).count("#") == 10


def test_meter_works_without_a_window():
    from msgspec.structs import replace

    bare = replace(CONTEXT, window=None, last=None, totals=Totals())
    assert "".join(text for text, _ in status(bare)) == (
        "  [########################] 6,500: results 4,000, system 1,000, tools 1,000"
    )
    assert kind_table(bare)[-1] == ("all", "6,500", "")


def test_money_is_in_dollars_if_the_price_is_known():
    from msgspec.structs import replace

    priced = replace(CONTEXT, dollars_by_model={"a:b": 0.01234}, dollars_saved=-0.002)
    assert "".join(text for text, _ in status(priced)).endswith("| cost $0.0123, saved -$0.0020 (without demo)")
    assert [row[-1] for row in bill_table(priced)] == ["cost", "no price", "$0.0123", "$0.0123"]
    assert saving_table(priced)[-1] == ("saved, US dollars", "-$0.0020")
    all_priced = replace(priced, dollars_by_model={"a:b": 0.01, "demo": 0.0})
    assert "".join(text for text, _ in status(all_priced)).endswith("| cost $0.0100, saved -$0.0020")


def test_tables_of_the_bill_add_up():
    """The tokens of all calls are those of the models, and the requests hold the messages and the rest."""
    assert bill_table(CONTEXT) == [
        ("model", "calls", "input", "cached", "written", "other", "output", "cost in input tokens"),
        ("demo", "1", "2,600", "2,000", "500", "100", "40", "1,125"),
        ("a:b", "2", "11,700", "10,000", "1,500", "200", "60", "3,375"),
        ("all", "3", "14,300", "12,000", "2,000", "300", "100", "4,500"),
    ]
    assert saving_table(CONTEXT) == [
        ("messages in all calls", "10,000"),
        ("system prompt and tools in all calls", "4,300"),
        ("input of all calls", "14,300"),
        ("messages if each call sent the whole history", "60,000"),
        ("messages written again because of edits", "0"),
        ("saved, in tokens at the price of input", "5,000"),
    ]


def test_kind_table_sums_to_the_window():
    assert kind_table(CONTEXT) == [
        ("results", "4,000", "25%"),
        ("system", "1,000", "6%"),
        ("tools", "1,000", "6%"),
        ("shrunk", "500", "3%"),
        ("all", "6,500", "41%"),
        ("reserved for the answer", "1,600", "10%"),
        ("free", "7,900", "49%"),
        ("window", "16,000", ""),
    ]


NASTY = "\x1b]0;owned\x07\x1b[2J\r\x08\x9b31m\u202egnp.exe\ud83d\x7f"


@pytest.mark.parametrize(
    "event",
    [
        TextDelta(NASTY),
        ReasoningDelta(NASTY),
        Notice(NASTY),
        replied(assistant(NASTY)),
        ToolAnswered(ToolCall("c", NASTY, f'{{"a": "{NASTY}"}}'), ToolResult("c", (Text(NASTY),), "error"), 1.0),
        ToolAnswered(ToolCall("c", "t", NASTY), ToolResult("c", (Text(NASTY),)), 1.0),
        ended("failed", NASTY),
        Question(ToolCall("c", NASTY, NASTY)),
    ],
    ids=lambda event: type(event).__name__,
)
def test_foreign_text_cannot_control_the_terminal(event, capsys):
    Pipe().show(event)
    printed = capsys.readouterr().out
    assert [char for char in printed if ord(char) < 32 and char != "\n"] == []
    assert not set(printed) & {"\x7f", "\x9b", "\u202e", "\ud83d"}
    assert printed.strip()


@given(
    st.lists(
        st.sampled_from(["a", "b\n", "\n", "", " "]).map(TextDelta) | st.just(ReasoningDelta("t")) | st.just(CONTEXT)
    )
)
def test_rendering_loses_no_text_and_keeps_the_meter_on_its_line(events):
    text = text_of(*events)
    for letter in "abt":
        expected = sum(event.text.count(letter) for event in events if isinstance(event, TextDelta | ReasoningDelta))
        assert "".join(line for line in text.splitlines() if "[" not in line).count(letter) == expected
    assert all(line.startswith("  [") for line in text.splitlines() if "[" in line)


def test_text_interrupted_while_it_is_printed_is_printed_once(monkeypatch):
    """Ctrl-C may come between the write and the end of the print."""
    output = InterruptedOnce()
    monkeypatch.setattr("sys.stdout", output)
    screen = Terminal()
    with pytest.raises(KeyboardInterrupt):
        screen.show(TextDelta("one two "))
    screen.show(Notice("Stopped."))
    assert output.getvalue().count("one") == 1


class InterruptedOnce(io.StringIO):
    """A terminal whose user presses Ctrl-C when the first word is on the screen."""

    was_interrupted = False

    def isatty(self) -> bool:
        return True

    def flush(self) -> None:
        if "one" in self.getvalue() and not self.was_interrupted:
            self.was_interrupted = True
            raise KeyboardInterrupt
