"""Recorder of the demo: a scripted agent works on the sample project with real tools.

    python examples/record_demo.py [OUT]        (default: examples/data/demo.jsonl)

`demo_story.txt` holds the agent's texts and calls; no model is called. The tools are real: they read, search and change
a copy of `sample_project/` and run its tests, and their results are recorded unchanged. The recording has one
chat-completions message a line. It does not depend on the time, the machine or the folder: every run writes the same
bytes (on the Python versions that foveate supports).
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from screenplay import Call, Line, read

HERE = Path(__file__).resolve().parent
STORY = HERE / "demo_story.txt"
SAMPLE = HERE / "sample_project"
RECORDING = HERE / "data" / "demo.jsonl"

CONTEXT = 3
"""Lines that `edit_file` shows around its change."""


def main(arguments: list[str]) -> None:
    """Make the recording and write it to the given file, or to its place in the repository."""
    out = Path(arguments[0]) if arguments else RECORDING
    text = record()
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(text, encoding="utf-8", newline="\n")
    messages = [json.loads(line) for line in text.splitlines()]
    calls = sum(len(message.get("tool_calls", ())) for message in messages)
    print(f"{out}: {len(messages)} messages, {calls} tool calls, {len(text):,} characters")


def record() -> str:
    """Return the whole recording as JSON Lines."""
    with tempfile.TemporaryDirectory() as folder:
        # Resolved, because tests print paths and a temporary folder may be a link.
        root = Path(folder).resolve() / "granary"
        shutil.copytree(SAMPLE, root, ignore=shutil.ignore_patterns("__pycache__"))
        tools = Tools(root)
        messages = [message for line in read(STORY.read_text(encoding="utf-8")) for message in play(line, tools)]
    return "".join(json.dumps(message, ensure_ascii=False) + "\n" for message in messages)


def play(line: Line, tools: Tools) -> list[dict[str, Any]]:
    """Return one line of the screenplay as chat-completions messages: its text, and the result of each tool."""
    if line.speaker != "agent":
        return [{"role": line.speaker, "content": line.text}]
    if not line.calls:
        return [{"role": "assistant", "content": line.text}]
    answers = [tools.run(call) for call in line.calls]
    return [
        {
            "role": "assistant",
            "content": line.text or None,
            "tool_calls": [
                {
                    "id": number,
                    "type": "function",
                    "function": {"name": call.tool, "arguments": json.dumps(call.arguments, ensure_ascii=False)},
                }
                for call, (number, _) in zip(line.calls, answers, strict=True)
            ],
        },
        *({"role": "tool", "tool_call_id": number, "content": text} for number, text in answers),
    ]


@dataclass
class Tools:
    """The tools for one folder. A mistake of the agent gives a result that begins with `error:`."""

    root: Path
    calls: int = 0

    def run(self, call: Call) -> tuple[str, str]:
        """Use a tool. Returns the id of the call and the result."""
        self.calls += 1
        # Looks like a provider's id, and is reproducible.
        number = "call_" + hashlib.sha256(f"demo {self.calls}".encode()).hexdigest()[:20]
        tool: Callable[..., str] = getattr(self, call.tool)
        try:
            return number, tool(**call.arguments)
        except ToolError as error:
            return number, f"error: {error}"

    def list_files(self, folder: str) -> str:
        """Every file with its number of lines, and a total."""
        rows = [(path, len(self._text(path).splitlines())) for path in self._files(folder)]
        return "\n".join([f"{lines:6d}  {path}" for path, lines in rows] + [f"{len(rows)} files"])

    def read_file(self, path: str, first: int = 1, last: int | None = None) -> str:
        """Numbered lines, all of them or from `first` to `last`."""
        lines = self._text(path).splitlines()
        shown = lines[first - 1 : last]
        if not shown:
            raise ToolError(f"{path} has {len(lines)} lines")
        return "\n".join(f"{number:6d}\t{line}" for number, line in enumerate(shown, start=first))

    def search(self, folder: str, pattern: str) -> str:
        """Lines that match a regular expression, as `path:line:text`."""
        wanted = re.compile(pattern)
        hits = [
            f"{path}:{number}:{line}"
            for path in self._files(folder)
            for number, line in enumerate(self._text(path).splitlines(), start=1)
            if wanted.search(line)
        ]
        return "\n".join(hits) if hits else f"nothing matches {pattern!r} in {folder}"

    def edit_file(self, path: str, old: str, new: str) -> str:
        """Replace `old`, which must stand in the file exactly once, by `new`. An empty `old` makes a new file."""
        if not old:
            if (self.root / path).exists():
                raise ToolError(f"{path} is already there; say what to replace")
            self._write(path, new)
            return f"created {path} with {len(new.splitlines())} lines"
        text = self._text(path)
        found = text.count(old)
        if found != 1:
            problem = "does not stand in" if found == 0 else f"stands {found} times in"
            raise ToolError(f"the text to replace {problem} {path}; nothing was changed")
        self._write(path, text.replace(old, new))
        line = text[: text.index(old)].count("\n") + 1
        last = line + len(new.rstrip("\n").splitlines()) - 1
        shown = self.read_file(path, max(1, line - CONTEXT), last + CONTEXT)
        return f"edited {path}, lines {line}-{last} now read:\n{shown}"

    def run_tests(self, names: str = "", quiet: bool = False) -> str:
        """Run the tests of the project, or of some modules (blanks between), and return what they print."""
        return self._python("run_tests.py", *["-q"] * quiet, *names.split())

    def granary(self, arguments: list[str]) -> str:
        """Run the command line of the project."""
        return self._python("-m", "granary.cli", *arguments)

    def _python(self, *arguments: str) -> str:
        # -B: an edit within the same second keeps the file's time, so Python would use the old bytecode.
        environment = {**os.environ, "PYTHONHASHSEED": "0", "PYTHONUTF8": "1", "PYTHONPATH": str(self.root)}
        command = [sys.executable, "-B", *arguments]
        done = subprocess.run(
            command, cwd=self.root, env=environment, capture_output=True, encoding="utf-8", timeout=60, check=False
        )
        return (done.stdout + done.stderr).rstrip() + f"\n[exit code {done.returncode}]"

    def _files(self, folder: str) -> list[str]:
        start = self.root / folder
        if not start.exists():
            raise ToolError(f"there is no {folder}")
        paths = [start] if start.is_file() else start.rglob("*")
        return sorted(path.relative_to(self.root).as_posix() for path in paths if path.is_file())

    def _text(self, path: str) -> str:
        try:
            return (self.root / path).read_text(encoding="utf-8")
        except FileNotFoundError:
            raise ToolError(f"there is no file {path}") from None

    def _write(self, path: str, text: str) -> None:
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(text, encoding="utf-8", newline="\n")


class ToolError(Exception):
    """The result of a tool that was used wrongly."""


if __name__ == "__main__":
    main(sys.argv[1:])
