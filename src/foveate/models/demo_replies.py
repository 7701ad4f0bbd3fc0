"""What the demo says to a request: a few sentences it understands, answered with what tools really said. Pure.

It remembers nothing: like a language model it knows what stands in the messages, and asks the tool `expand` for what
does not stand there any more.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import PurePosixPath

from ..core.messages import Message, assistant
from .demo_request import Offered, Past, Step, Want, past_of

__all__ = ["HELP", "Reply", "answer_to", "tour"]

# MODULEDOC """The demo's tour: one file after the other is read and searched for, some forty calls, until the window
# overflows.
#
# Where it is it finds out from what it said with its newest call, as a language model would have to; and once the list
# of files is shrunk, it lists them again.
# """
_FILES = 20
"""Each is read and searched for: two calls."""
_LARGEST = 100_000
"""Bytes of a file that is worth a look."""
_TEXTS = frozenset((".c", ".cfg", ".css", ".csv", ".go", ".html", ".ini", ".java", ".js", ".json", ".md", ".py", ".rs"))
_TEXTS |= {".rst", ".sh", ".sql", ".toml", ".ts", ".txt", ".xml", ".yaml", ".yml"}
_FIRST = ("deep", True), ("pattern", "*.[mp][dy]")
"""What is listed: Markdown and Python, and all files where there are none of these."""
_ALL = (("deep", True),)
_AT = re.compile(r"\((\d+) of \d+\)")
"""How the demo says where it is."""


def tour(past: Past, *_: str) -> tuple[str, Sequence[Want]]:
    """What is said next on the tour, and done."""
    steps = past.steps
    if not steps:
        return "A tour, then. First the list of what is here.", [Want("list", ".", _FIRST)]
    files = _files(steps)
    if steps[-1].deed == "expand":
        return _told(files or ()), ()
    if files is None:
        return _list_again(past)
    if not files and steps[-1].deed == "list" and not steps[-1].failed and "all files" not in steps[-1].said:
        return f"No Markdown, no Python ({_done(steps)} of {_FILES}): all files, then.", [Want("list", ".", _ALL)]
    if not files:
        return "There are no files here that I could read. Start the chat in another --folder.", ()
    done = _done(steps)
    if done < len(files):
        return f"{files[done]} ({done + 1} of {len(files)}).", [
            Want("read", files[done]),
            Want("search", PurePosixPath(files[done]).stem, (("ignore_case", True),)),
        ]
    return _end(past, files)


def _end(past: Past, files: Sequence[str]) -> tuple[str, Sequence[Want]]:
    """Something that was shrunk is had back, to show that it can be; then the tour is over."""
    shrunk = next((step for step in past.steps if step.deed == "read" and step.shrunk), None)
    if shrunk is not None and past.may_expand:
        return f"What I read in {shrunk.what} is shrunk by now. I have it back.", [Want("expand", shrunk.shrunk)]
    return _told(files), ()


def _told(files: Sequence[str]) -> str:
    count = f"{len(files)} files, each" if len(files) > 1 else "one file,"
    looked = f"{count} read and searched for. " if files else ""
    return (
        f"That was the tour: {looked}`/context` tells what the window holds, `/why m4` what became of the fourth "
        "message, `/cost` what all this cost and saved."
    )


def _list_again(past: Past) -> tuple[str, Sequence[Want]]:
    if past.steps[-1].deed == "list":
        return "I cannot see what files there are, so the tour ends here.", ()
    again = f"The list of files is shrunk by now ({_done(past.steps)} of {_FILES}); I list them again."
    return again, [Want("list", ".", _FIRST)]


def _files(steps: Sequence[Step]) -> list[str] | None:
    """The files of the tour, from the newest list that is shown whole; None where none is."""
    for step in reversed(steps):
        if step.deed == "list" and not step.shrunk:
            found = [] if step.failed else step.listed()[1]
            return [name for name, size in found if 0 < size <= _LARGEST and _is_text(name)][:_FILES]
    return None


def _is_text(name: str) -> bool:
    return PurePosixPath(name).suffix in _TEXTS


def _done(steps: Sequence[Step]) -> int:
    """How many files were read, by what was said last of that."""
    return next((int(found[1]) for step in reversed(steps) if (found := _AT.search(step.said))), 0)


Reply = tuple[str, Sequence[Want]]
"""What is said, and what is to be done next; done with it where that is nothing."""

HELP = """I am foveate's demo: a small program, no language model, so I understand only a few sentences. What I do \
is real: I use the tools of this chat on the files that are really there.

  what is in this folder
  read README.md
  find some words
  run git status             (you are asked first)
  remember: the port is 8080
  what did I say about the port
  show m4                    (has back what was shrunk)
  tour                       (about 40 calls of tools; see what is shrunk)
  count to 300               (something to stop with Ctrl-C)"""

_SHOWN = 5
"""Lines of a result that are quoted."""


def answer_to(said: Sequence[Message], offered: Offered, mark: str) -> Message:
    """The demo's answer to a conversation. `mark`: makes the ids of its calls different from all others."""
    past = past_of(said, offered)
    text, wants = _reply(past)
    calls = [offered.call(want, f"call_{mark}_{number}") for number, want in enumerate(wants, 1)]
    made = [call for call in calls if call is not None]
    if wants and not made:
        return assistant(_without(wants[0].deed))
    return assistant(text, *made)


def _reply(past: Past) -> Reply:
    for pattern, answer in _UNDERSTOOD:
        if found := pattern.match(past.request):
            return answer(past, *(group or "" for group in found.groups()))
    return _else(past)


def _else(past: Past) -> Reply:
    if not past.request:
        return "There is nothing to answer. Say `help` to see what I understand.", ()
    return (
        f"I am only a demo and do not understand {past.request[:60]!r}. Say `help` to see what I do understand, or "
        "start the chat with --model and the name of a language model.",
        (),
    )


def _help(past: Past) -> Reply:
    return HELP, ()


def _hello(past: Past) -> Reply:
    return "Hello! Try `what is in this folder`, or `tour`. `help` tells what else I understand.", ()


def _folder(past: Past) -> Reply:
    if not past.steps:
        return "I'll look.", [Want("list", ".")]
    step = past.steps[-1]
    if step.failed:
        return f"I could not list it: {step.text}", ()
    folders, files = step.listed()
    if not folders and not files:
        return "This folder is empty.", ()
    named = ", ".join([f"{name}/" for name in folders][:6] + [name for name, _ in files][:8])
    more = len(folders) + len(files) > len(folders[:6]) + len(files[:8])
    largest = max(files, key=lambda one: one[1], default=("", 0))
    told = f" The largest is {largest[0]}, {largest[1]:,} bytes: `read {largest[0]}` shows it." if largest[1] else ""
    return (
        f"{_many(len(files), 'file')} and {_many(len(folders), 'folder')}: {named}{', ...' if more else ''}.{told}",
        (),
    )


def _read(past: Past, path: str) -> Reply:
    path = path.strip("`'\"")
    if not past.steps:
        return "", [Want("read", path)]
    step = past.steps[-1]
    if step.failed:
        return f"I could not read it: {step.text}", ()
    lines = step.text.splitlines()
    heads = [line.strip() for line in lines if re.match(r"\s*(?:#+ |def |class |async def |function |\[\w)", line)]
    told = f"\n\n{_many(len(heads), 'heading or definition', 'headings and definitions')} in it." if heads else ""
    return f"{path} has {_many(len(lines), 'line')}. It begins:\n\n{_quoted(lines)}{told}", ()


def _find(past: Past, words: str) -> Reply:
    words = words.strip("`'\"?.")
    if not past.steps:
        return "", [Want("search", re.escape(words).replace("\\ ", " "), (("ignore_case", True),))]
    step = past.steps[-1]
    if step.failed:
        return f"I could not search: {step.text}", ()
    found = [line for line in step.text.splitlines() if re.match(r"[^\[(].*?:\d+:", line)]
    files = {line.split(":")[0] for line in found}
    if not found:
        return f"No file in this folder says {words!r}.", ()
    where = f"{_many(len(found), 'line')} in {_many(len(files), 'file')}"
    return f"{words!r} stands in {where}:\n\n{_quoted(found)}", ()


def _run(past: Past, command: str) -> Reply:
    if not past.steps:
        return "", [Want("run", command)]
    step = past.steps[-1]
    if step.failed:
        return f"That did not work: {step.text}", ()
    return f"It printed:\n\n{_quoted(step.text.splitlines())}", ()


def _remember(past: Past, what: str) -> Reply:
    return (
        f"I'll keep that in mind: {what.strip()}. Ask me later what you said about it, however much comes between.",
        (),
    )


def _recall(past: Past, about: str) -> Reply:
    about = about.strip("`'\"?. ")
    words = [word for word in re.findall(r"\w+", about.lower()) if word not in ("the", "a", "an", "my")]
    told = [text for text in past.inputs if all(word in text.lower() for word in words)]
    if told:
        return f"You said: {told[-1]}", ()
    if not past.steps and past.may_expand:
        return "I don't see it any more, so I look in what is not shown.", [Want("expand", "", (("search", about),))]
    if past.steps and not past.steps[-1].failed:
        return f"In what is not shown any more I found:\n\n{_quoted(past.steps[-1].text.splitlines())}", ()
    return f"You have not said anything about {about}, as far as I can see.", ()


def _show(past: Past, handle: str) -> Reply:
    if not past.steps:
        return "", [Want("expand", handle)]
    step = past.steps[-1]
    if step.failed:
        return f"I could not have it back: {step.text}", ()
    return f"Here it is again:\n\n{_quoted(step.text.splitlines())}", ()


def _count(past: Past, number: str) -> Reply:
    return " ".join(str(one) for one in range(1, min(int(number), 2_000) + 1)) + ".", ()


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
"""What is understood, the first that fits."""


def _quoted(lines: Sequence[str], most: int = _SHOWN) -> str:
    shown = [f"    {line[:100]}" for line in lines if line.strip()][:most]
    left = len([line for line in lines if line.strip()]) - len(shown)
    return "\n".join([*shown, *([f"    ... and {_many(left, 'more line')}"] if left > 0 else [])])


def _many(number: int, what: str, several: str = "") -> str:
    return f"{number:,} {what if number == 1 else several or f'{what}s'}"


def _without(deed: str) -> str:
    needs = {"run": "shell", "search": "search", "expand": ""}.get(deed, "files")
    start = f" Start the chat with --tools {needs}." if needs else ""
    return f"I was not given a tool for that.{start}"
