"""Wide tables, progress, and messages shortened for a terminal."""

from __future__ import annotations

import io
import re
import sys

from foveate import Media, Message, Opaque, Reasoning, Text, ToolCall, ToolResult, tool_result
from foveate.cli import output
from foveate.cli.text import beginning, complain, message_text, printable, shortened


class Terminal(io.StringIO):
    encoding = "utf-8"

    def isatty(self):
        return True


def test_table_fits_the_terminal(monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    monkeypatch.setenv("COLUMNS", "24")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    output.print_table(
        ("policy", "cost", "all-in", "peak"), [("none", "100 %", "100 %", "12"), ("prune", "77 %", "88 %", "9")]
    )
    assert re.sub(r"\x1b\[\d*m", "", terminal.getvalue()).splitlines() == [
        "policy   none  prune",
        "cost    100 %   77 %",
        "all-in  100 %   88 %",
        "peak       12      9",
        "",
    ]


def test_progress_is_shown_only_at_a_terminal(monkeypatch):
    with output.progress("Replaying", 5) as update:
        assert update is None
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    with output.progress("Replaying", 0) as update:
        assert update is None
    with output.progress("Replaying", 5) as update:
        assert update is not None
        update(3, 5, "a[b].jsonl")
    assert "Replaying" in terminal.getvalue()
    assert "3/5" in terminal.getvalue()


def test_message_text_has_every_kind_of_part():
    message = Message(
        "assistant",
        (
            Reasoning("Hm.", "sig"),
            Reasoning(encrypted="xyz"),
            Text("Here:"),
            ToolCall("c1", "ls", '{"path": "."}'),
            Media("image/png", "base64", "A" * 4000),
            Media("image/png", "url", "https://example.org/a.png"),
            Opaque("anthropic", "server_tool_use", "{}"),
        ),
    )
    assert message_text(message).split("\n") == [
        "(thought) Hm.",
        "(thought, encrypted)",
        "Here:",
        '→ ls {"path": "."}  [c1]',
        "[image/png, 3,000 bytes]",
        "[image/png https://example.org/a.png]",
        "[server_tool_use of anthropic] {}",
    ]
    assert message_text(tool_result("c1", "no such file", state="error")) == "(error)\nno such file"
    assert message_text(Message("tool", (ToolResult("c1"),))) == ""


def test_shortened_text_keeps_both_ends():
    text = "\n".join(f"line {number}" for number in range(20)) + "\n\n"
    assert shortened(text, lines=5).split("\n") == [
        "line 0",
        "line 1",
        "… 16 more lines, --full shows all",
        "line 18",
        "line 19",
    ]
    assert shortened("x" * 200, width=10) == "xxxxxxxxx…"
    assert shortened("a\nb") == "a\nb"


def test_beginning_of_a_message_is_one_line():
    assert beginning(Message("user", (Text("  one\n\ttwo  three"),))) == "one two three"
    assert beginning(Message("user", (Text("word " * 50),)), 12) == "word word w…"
    assert beginning(Message("user", ())) == ""


def test_control_characters_are_made_visible():
    assert printable("a\tb\nc\r\nd\x1b[0m\x00\x7f\u202e") == "a\tb\nc\nd\u241b[0m\u2400\u2421\ufffd"


def test_error_wraps_at_words_on_a_terminal(monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("COLUMNS", "30")
    complain("foveate: There is no policy 'balansed'. Did you mean balanced?")
    assert terminal.getvalue().splitlines() == ["foveate: There is no policy", "'balansed'. Did you mean", "balanced?"]


def test_tabs_count_as_spaces_when_lines_wrap(monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    monkeypatch.setenv("COLUMNS", "24")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    output.say("  59\tdef total(prices): return 0")
    assert terminal.getvalue().splitlines() == ["  59    def", "  total(prices): return", "  0"]
