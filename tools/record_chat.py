"""Records `foveate chat --model demo` at a pseudo-terminal, and draws it as an animated SVG for the README.

    .venv/bin/pip install pyte && .venv/bin/python tools/record_chat.py

The text is that of a real run; the pace is made for reading. One animation moves a cover down the lines, and another
moves the lines up, so that the file stays small. A reader who prefers no motion sees the last screen.
"""

from __future__ import annotations

import fcntl
import os
import pty
import select
import shutil
import struct
import sys
import tempfile
import termios
import time
from html import escape
from itertools import groupby
from pathlib import Path
from typing import Any

import pyte

ROOT = Path(__file__).resolve().parent.parent
TARGET = ROOT / "docs" / "images" / "chat.svg"
TYPED = ("what is in this folder", "tour", "/cost")
COLUMNS, ROWS = 100, 26
CELL, LINE, EDGE, BAR = 8.0, 19, 16, 34
"""Pixels: of a character and a line, around the text, and of the title bar."""
COLORS = {
    "default": "#d6deeb",
    "black": "#7f8c98",
    "red": "#ff7b72",
    "green": "#7ee787",
    "brown": "#e3b341",
    "blue": "#79b8ff",
    "magenta": "#d2a8ff",
    "cyan": "#76e3ea",
    "white": "#f0f6fc",
}
Cells = list[Any]


def main() -> None:
    lines = record()
    TARGET.write_text(draw(lines), encoding="utf-8")
    print(f"{TARGET.relative_to(ROOT)}: {len(lines)} lines, {TARGET.stat().st_size:,} bytes")


def record() -> list[Cells]:
    """Run the chat, type each text after the prompt has come, and return every line with its styles."""
    screen = pyte.HistoryScreen(COLUMNS, 200, history=1_000)
    stream = pyte.ByteStream(screen)
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(ROOT / "examples" / "sample_project", Path(folder) / "sample_project")
        pid, terminal = pty.fork()
        if pid == 0:
            os.chdir(folder)
            plain = {name: value for name, value in os.environ.items() if not name.startswith("FOVEATE_")}
            arguments = ["chat", "ship", "--model", "demo", "--folder", "sample_project", "--store", "chat.db"]
            environment = {**plain, "TERM": "xterm-256color", "PYTHONPATH": str(ROOT / "src")}
            os.execve(sys.executable, [sys.executable, "-m", "foveate", *arguments], environment)
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 200, COLUMNS, 0, 0))
        for count, text in enumerate(TYPED, 1):
            read_until(terminal, stream, screen, count)
            os.write(terminal, text.encode() + b"\r")
        read_until(terminal, stream, screen, len(TYPED) + 1)
        os.write(terminal, b"\x04")
        os.waitpid(pid, 0)
        os.close(terminal)
    lines = [[screen.buffer[y][x] for x in range(COLUMNS)] for y in range(screen.lines)]
    while not text_of(lines[-1]).strip(" >"):
        lines.pop()
    return lines


def read_until(terminal: int, stream: Any, screen: Any, prompts: int) -> None:
    """Read output until that many prompts came, and the last one is still empty. Raises TimeoutError after a minute."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        if select.select([terminal], [], [], 0.5)[0]:
            stream.feed(os.read(terminal, 65_536))
        else:
            asked = [line for line in screen.display if line.startswith(">")]
            if len(asked) == prompts and not asked[-1].strip(" >"):
                return
    raise TimeoutError(f"The chat printed no prompt {prompts} within a minute. Run it by hand to see why.")


def text_of(line: Cells) -> str:
    return "".join(cell.data for cell in line).rstrip()


def draw(lines: list[Cells]) -> str:
    """Return the SVG: the lines, the cover below the newest one, and a cover on each text that is typed."""
    width, height = COLUMNS * CELL + 2 * EDGE, ROWS * LINE + 2 * EDGE + BAR
    moments, at = [], 0.6  # The times at which lines are complete.
    typing: list[tuple[int, float, float]] = []
    for number, line in enumerate(lines):
        text = text_of(line)
        if text.startswith("> "):
            typing.append((number, at, at + 0.09 * len(text)))
            at = typing[-1][2] + 0.5
        else:
            at += pace(text)
        moments.append(at)
    total = at + 8
    cover, scroll = ["0%{transform:translateY(0)}"], ["0%{transform:translateY(0)}"]
    shown_from = {number: start for number, start, _ in typing}
    for number, moment in enumerate(moments):
        percent = f"{100 * shown_from.get(number, moment) / total:.2f}%"
        cover.append(f"{percent}{{transform:translateY({(number + 1) * LINE}px)}}")
        if number >= ROWS:
            scroll.append(f"{percent}{{transform:translateY({(ROWS - 1 - number) * LINE}px)}}")
    last = (ROWS - len(lines)) * LINE
    styles = [
        "text{font:13.3px ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace;white-space:pre}",
        f".a{{animation:{total:.1f}s step-end infinite}}",
        "#c{animation-name:c}#s{animation-name:s}",
        f"@keyframes c{{{''.join(cover)}}}",
        f"@keyframes s{{{''.join(scroll)}}}",
        *(f".{name}{{fill:{color}}}" for name, color in COLORS.items()),
        ".b{font-weight:700}rect{fill:#0d1420}.dot{fill:#38465a}rect.blue{fill:#79b8ff}",
    ]
    covers = []
    for key, (number, start, end) in enumerate(typing):
        length = len(text_of(lines[number])) - 2
        a, b = 100 * start / total, 100 * end / total
        steps = f"animation-timing-function:steps({length})"
        far = f"transform:translateX({COLUMNS * CELL:g}px)"
        styles.append(
            f"#t{key}{{animation-name:t{key}}}@keyframes t{key}{{0%{{transform:none}}{a:.2f}%{{transform:none;{steps}}}"
            f"{b:.2f}%{{transform:translateX({length * CELL:g}px)}}{b + 0.01:.2f}%{{{far}}}100%{{{far}}}}}"
        )
        top = number * LINE
        covers.append(
            f'<g id="t{key}" class="a typed"><rect x="{2 * CELL}" y="{top}" width="{COLUMNS * CELL}" height="{LINE}"/>'
            f'<rect x="{2 * CELL}" y="{top + 2}" width="{CELL}" height="{LINE - 3}" class="blue"/></g>'
        )
    still = f".a{{animation:none}}#c,.typed{{display:none}}#s{{transform:translateY({last}px)}}"
    styles.append(f"@media(prefers-reduced-motion){{{still}}}")
    rows = "\n".join(filter(None, (draw_line(line, number) for number, line in enumerate(lines))))
    dots = "".join(f'<circle cx="{20 + 20 * n}" cy="17" r="6" class="dot"/>' for n in range(3))
    name = "A terminal: the demo's tour makes 40 tool calls, and the chat keeps its window of 16,000 tokens."
    everything = (len(lines) + ROWS) * LINE
    box = f'viewBox="0 0 {width:g} {height}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {box} role="img" aria-label="{escape(name)}">',
        f"<style>{''.join(styles)}</style>",
        f'<rect width="{width:g}" height="{height}" rx="10"/>{dots}',
        f'<text x="{width / 2:g}" y="22" text-anchor="middle" class="black">foveate chat ship --model demo</text>',
        f'<svg x="{EDGE}" y="{BAR + EDGE // 2}" width="{COLUMNS * CELL:g}" height="{ROWS * LINE + 4}">',
        f'<g id="s" class="a">{rows}',
        *covers,
        f'<rect id="c" class="a" width="{COLUMNS * CELL:g}" height="{everything}"/></g></svg></svg>',
    ]
    return "\n".join(parts) + "\n"


def pace(text: str) -> float:
    """Return the seconds before a line: tool calls take a moment, and changes of the view are read."""
    match text.strip()[:1]:
        case "*":
            return 0.22
        case "~":
            return 0.7
        case "[":
            return 0.9
        case _:
            return 0.12


def draw_line(line: Cells, number: int) -> str:
    """Return the runs of one line that have the same style, each at its column."""
    found, column = [], 0
    for (color, is_bold), cells in groupby(line, key=lambda cell: (cell.fg, cell.bold)):
        text = "".join(cell.data for cell in cells)
        kept = text.strip()
        if kept:
            start = column + len(text) - len(text.lstrip())
            style = f"{color if color in COLORS else 'default'}{' b' if is_bold else ''}"
            found.append(
                f'<text class="{style}" x="{start * CELL:g}" y="{number * LINE + 14}" '
                f'textLength="{len(kept) * CELL:g}">{escape(kept, quote=False)}</text>'
            )
        column += len(text)
    return "".join(found)


if __name__ == "__main__":
    main()
