"""Replies of the demo: the sentences it understands, answered from real tool results.

The demo keeps no state. Like a language model it knows only the messages, and calls the tool `expand` for content that
they no longer show.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from ..core.messages import Message, assistant
from .demo_request import Past, Reply, ToolSet, Want, read_past
from .demo_tour import tour

__all__ = ["HELP", "answer_to"]

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

_CONTINUE = re.compile(r"Your answer was (?:stopped|cut off)\b.* Go on exactly where it broke off\.$", re.DOTALL)
"""The request of an agent to continue an answer."""
_SHOWN = 5
"""Lines of a result to quote."""


def answer_to(messages: Sequence[Message], tools: ToolSet, mark: str) -> Message:
    """Return the demo's answer to a conversation. `mark` makes the ids of its calls unique."""
    messages, beginning = _without_stops(messages)
    text, wants = _reply(read_past(messages, tools))
    text = text.removeprefix(beginning)
    calls = [tools.call(want, f"call_{mark}_{number}") for number, want in enumerate(wants, 1)]
    possible = [call for call in calls if call is not None]
    if wants and not possible:
        return assistant(_without(wants[0].task))
    return assistant(text, *possible)


def _without_stops(messages: Sequence[Message]) -> tuple[Sequence[Message], str]:
    """Return the messages without a stopped answer at their end that is to be continued, and the text of it."""
    beginning = ""
    while len(messages) > 1 and messages[-2].role == "assistant" and _CONTINUE.match(messages[-1].text):
        beginning = messages[-2].text + beginning
        messages = messages[:-2]
    return messages, beginning


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
    (_rule(r"help|what can you do"), lambda past: (HELP, ())),
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
