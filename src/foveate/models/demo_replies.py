"""Replies of the demo: the sentences it understands, answered from real tool results.

The demo keeps no state. Like a language model it knows only the messages, and calls the tool `expand` for content that
they no longer show. On its tour it finds its place from its own last text, and lists the files again if the list is
shrunk.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import PurePosixPath

from ..core.messages import Message, assistant
from .demo_request import Past, Step, ToolSet, Want, read_past

__all__ = ["HELP", "Reply", "answer_to", "tour"]

_FILES = 20
"""The tour reads and searches each: two calls a file."""
_LARGEST = 100_000
"""The largest file of the tour, in bytes."""
_TEXTS = frozenset((".c", ".cfg", ".css", ".csv", ".go", ".html", ".ini", ".java", ".js", ".json", ".md", ".py", ".rs"))
_TEXTS |= {".rst", ".sh", ".sql", ".toml", ".ts", ".txt", ".xml", ".yaml", ".yml"}
_FIRST = ("deep", True), ("pattern", "*.[mp][dy]")
"""The tour lists Markdown and Python files, or all files if there are none."""
_ALL = (("deep", True),)
_AT = re.compile(r"\((\d+) of \d+\)")
"""The demo's place on the tour, as its texts give it."""


def tour(past: Past, *_: str) -> tuple[str, Sequence[Want]]:
    """Return the next text and calls of the tour."""
    steps = past.steps
    if not steps:
        return "A tour. First I list the files here.", [Want("list", ".", _FIRST)]
    files = _files(steps)
    if steps[-1].task == "expand":
        return _summary(files or ()), ()
    if files is None:
        return _list_again(past)
    if not files and steps[-1].task == "list" and not steps[-1].failed and "all files" not in steps[-1].text_before:
        return f"No Markdown, no Python ({_done(steps)} of {_FILES}), so I list all files.", [Want("list", ".", _ALL)]
    if not files:
        return "There are no files here that I can read. Start the chat in another --folder.", ()
    done = _done(steps)
    if done < len(files):
        return f"{files[done]} ({done + 1} of {len(files)}).", [
            Want("read", files[done]),
            Want("search", PurePosixPath(files[done]).stem, (("ignore_case", True),)),
        ]
    return _end(past, files)


def _end(past: Past, files: Sequence[str]) -> tuple[str, Sequence[Want]]:
    """Expand a shrunk result, to show that it is possible; then end the tour."""
    shrunk = next((step for step in past.steps if step.task == "read" and step.shrunk), None)
    if shrunk is not None and past.may_expand:
        return f"My reading of {shrunk.what} is shrunk by now. I expand it again.", [Want("expand", shrunk.shrunk)]
    return _summary(files), ()


def _summary(files: Sequence[str]) -> str:
    count = f"{len(files)} files, each" if len(files) > 1 else "one file,"
    looked = f"{count} read and searched for. " if files else ""
    return (
        f"The tour is complete: {looked}`/context` shows what the window holds, `/why m4` what happened to the fourth "
        "message, `/cost` what all this cost and saved."
    )


def _list_again(past: Past) -> tuple[str, Sequence[Want]]:
    if past.steps[-1].task == "list":
        return "I cannot see the list of files, so the tour ends here.", ()
    again = f"The list of files is shrunk by now ({_done(past.steps)} of {_FILES}). I list them again."
    return again, [Want("list", ".", _FIRST)]


def _files(steps: Sequence[Step]) -> list[str] | None:
    """Return the files of the tour, from the newest list that is shown in full, or None if there is none."""
    for step in reversed(steps):
        if step.task == "list" and not step.shrunk:
            entries = [] if step.failed else step.files_listed()[1]
            return [name for name, size in entries if 0 < size <= _LARGEST and _is_text(name)][:_FILES]
    return None


def _is_text(name: str) -> bool:
    return PurePosixPath(name).suffix in _TEXTS


def _done(steps: Sequence[Step]) -> int:
    """Return how many files the tour has read, from its last text."""
    return next((int(match[1]) for step in reversed(steps) if (match := _AT.search(step.text_before))), 0)


Reply = tuple[str, Sequence[Want]]
"""A text, and the next calls; without calls the demo is done."""

HELP = """I am foveate's demo: a small program, not a language model, so I understand only a few sentences. My work \
is real: I use the tools of this chat on the files in this folder.

  what is in this folder
  read README.md
  find some words
  run git status             (you are asked first)
  remember: the port is 8080
  what did I say about the port
  show m4                    (expands a shrunk message)
  tour                       (about 40 tool calls; watch the view shrink)
  count to 300               (long enough to stop with Ctrl-C)"""

_SHOWN = 5
"""Lines of a result to quote."""


def answer_to(messages: Sequence[Message], tools: ToolSet, mark: str) -> Message:
    """Return the demo's answer to a conversation. `mark` makes the ids of its calls unique."""
    past = read_past(messages, tools)
    text, wants = _reply(past)
    calls = [tools.call(want, f"call_{mark}_{number}") for number, want in enumerate(wants, 1)]
    possible = [call for call in calls if call is not None]
    if wants and not possible:
        return assistant(_without(wants[0].task))
    return assistant(text, *possible)


def _reply(past: Past) -> Reply:
    for pattern, answer in _UNDERSTOOD:
        if match := pattern.match(past.request):
            return answer(past, *(group or "" for group in match.groups()))
    return _not_understood(past)


def _not_understood(past: Past) -> Reply:
    if not past.request:
        return "The message is empty. Type `help` to see what I understand.", ()
    return (
        f"I am only a demo and do not understand {past.request[:60]!r}. Type `help` to see what I understand, or "
        "start the chat with --model and the name of a language model.",
        (),
    )


def _help(past: Past) -> Reply:
    return HELP, ()


def _hello(past: Past) -> Reply:
    return "Hello! Try `what is in this folder`, or `tour`. `help` lists all that I understand.", ()


def _folder(past: Past) -> Reply:
    if not past.steps:
        return "I'll look.", [Want("list", ".")]
    step = past.steps[-1]
    if step.failed:
        return f"I could not list it: {step.text}", ()
    folders, files = step.files_listed()
    if not folders and not files:
        return "This folder is empty.", ()
    named = ", ".join([f"{name}/" for name in folders][:6] + [name for name, _ in files][:8])
    more = len(folders) + len(files) > len(folders[:6]) + len(files[:8])
    largest = max(files, key=lambda file: file[1], default=("", 0))
    counts = f"{_many(len(files), 'file')} and {_many(len(folders), 'folder')}"
    text = f"{counts}: {named}{', ...' if more else ''}."
    if largest[1]:
        text += f" The largest is {largest[0]}, {largest[1]:,} bytes: `read {largest[0]}` shows it."
    return text, ()


def _read(past: Past, path: str) -> Reply:
    path = path.strip("`'\"")
    if not past.steps:
        return "", [Want("read", path)]
    step = past.steps[-1]
    if step.failed:
        return f"I could not read it: {step.text}", ()
    lines = step.text.splitlines()
    heads = [line.strip() for line in lines if re.match(r"\s*(?:#+ |def |class |async def |function |\[\w)", line)]
    text = f"{path} has {_many(len(lines), 'line')}. It begins:\n\n{_quoted(lines)}"
    if heads:
        text += f"\n\n{_many(len(heads), 'heading or definition', 'headings and definitions')} in it."
    return text, ()


def _find(past: Past, words: str) -> Reply:
    words = words.strip("`'\"?.")
    if not past.steps:
        return "", [Want("search", re.escape(words).replace("\\ ", " "), (("ignore_case", True),))]
    step = past.steps[-1]
    if step.failed:
        return f"I could not search: {step.text}", ()
    lines = [line for line in step.text.splitlines() if re.match(r"[^\[(].*?:\d+:", line)]
    files = {line.split(":")[0] for line in lines}
    if not lines:
        return f"No file in this folder contains {words!r}.", ()
    where = f"{_many(len(lines), 'line')} in {_many(len(files), 'file')}"
    return f"{words!r} is in {where}:\n\n{_quoted(lines)}", ()


def _run(past: Past, command: str) -> Reply:
    if not past.steps:
        return "", [Want("run", command)]
    step = past.steps[-1]
    if step.failed:
        return f"That did not work: {step.text}", ()
    return f"It printed:\n\n{_quoted(step.text.splitlines())}", ()


def _remember(past: Past, what: str) -> Reply:
    return (
        f"I'll remember: {what.strip()}. Ask me later what you said about it, however long the chat gets.",
        (),
    )


def _recall(past: Past, about: str) -> Reply:
    about = about.strip("`'\"?. ")
    words = [word for word in re.findall(r"\w+", about.lower()) if word not in ("the", "a", "an", "my")]
    texts = [text for text in past.inputs if all(word in text.lower() for word in words)]
    if texts:
        return f"You said: {texts[-1]}", ()
    if not past.steps and past.may_expand:
        return "I no longer see it, so I search the hidden messages.", [Want("expand", "", (("search", about),))]
    if past.steps and not past.steps[-1].failed:
        return f"In the hidden messages I found:\n\n{_quoted(past.steps[-1].text.splitlines())}", ()
    return f"You have not said anything about {about}, as far as I can see.", ()


def _show(past: Past, handle: str) -> Reply:
    if not past.steps:
        return "", [Want("expand", handle)]
    step = past.steps[-1]
    if step.failed:
        return f"I could not expand it: {step.text}", ()
    return f"Here it is again:\n\n{_quoted(step.text.splitlines())}", ()


def _count(past: Past, number: str) -> Reply:
    return " ".join(str(number) for number in range(1, min(int(number), 2_000) + 1)) + ".", ()


def _rule(pattern: str) -> re.Pattern[str]:
    return re.compile(rf"\s*(?:please\s+)?(?:{pattern})\s*[.!?]*\s*$", re.IGNORECASE | re.DOTALL)


_UNDERSTOOD: Sequence[tuple[re.Pattern[str], Callable[..., Reply]]] = (
    (_rule(r"help|what can you do"), _help),
    (_rule(r"hi|hello|hey|good (?:morning|day|evening)"), _hello),
    (
        _rule(
            r"(?:what(?:'s| is) in|list|look at|show)(?: (?:this|the))?(?: (?:folder|directory|files?))|ls|what is here"
        ),
        _folder,
    ),
    (_rule(r"(?:take (?:a|the) |a )?tour(?: of .*)?"), tour),
    (_rule(r"(?:show|expand)(?: me)? (m\d+(?:\.\d+)*(?:-m\d+)?)"), _show),
    (_rule(r"(?:read|open|cat|show(?: me)?) (\S+)"), _read),
    (_rule(r"(?:find|search(?: for)?|grep|look for|where is) (.+?)"), _find),
    (_rule(r"(?:run|\$) ?(.+?)"), _run),
    (_rule(r"remember(?: that)?[:,]? (.+?)"), _remember),
    (_rule(r"what did i (?:say|tell you|ask)(?: (?:about|of))? (.+?)"), _recall),
    (_rule(r"count(?: up)? to (\d{1,4})"), _count),
)
"""Patterns and their replies; the first match counts."""


def _quoted(lines: Sequence[str], most: int = _SHOWN) -> str:
    shown = [f"    {line[:100]}" for line in lines if line.strip()][:most]
    left = len([line for line in lines if line.strip()]) - len(shown)
    return "\n".join([*shown, *([f"    ... and {_many(left, 'more line')}"] if left > 0 else [])])


def _many(number: int, what: str, several: str = "") -> str:
    return f"{number:,} {what if number == 1 else several or f'{what}s'}"


def _without(task: str) -> str:
    needs = {"run": "shell", "search": "search", "expand": ""}.get(task, "files")
    start = f" Start the chat with --tools {needs}." if needs else ""
    return f"I have no tool for that.{start}"
