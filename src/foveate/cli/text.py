"""Messages as text for a terminal: complete or shortened, and safe to print."""

from __future__ import annotations

import json
import re
import shutil
import sys
from collections.abc import Iterator

from ..core.messages import Media, Message, Opaque, Part, Reasoning, Text, ToolCall, ToolResult
from ..core.plurals import plural
from ..core.scripts import beginning_of
from ..replay.numbers import count

__all__ = ["beginning", "brief", "complain", "message_text", "one_line", "printable", "shortened", "write_json"]

_PICTURES = {code: 0x2400 + code for code in range(32) if chr(code) not in "\n\t"} | {0x7F: 0x2421}
_PICTURES |= dict.fromkeys((*range(0x80, 0xA0), 0x2028, 0x2029, *range(0x202A, 0x202F), *range(0x2066, 0x206A)), 0xFFFD)
_PICTURES |= dict.fromkeys(range(0xD800, 0xE000), 0xFFFD)  # Halves of surrogate pairs cannot be encoded.

_NOT_ASCII = re.compile(r"[^\x00-\x7f]+")
_ENDS = {code: 0x2400 + code for code in b"\n\t"}


def printable(text: str) -> str:
    """Make control characters visible, so that a recording cannot control the terminal."""
    return text.replace("\r\n", "\n").translate(_PICTURES)


def one_line(text: str) -> str:
    """Make control characters visible, line feeds too: for a name, which may contain any character."""
    return printable(text).translate(_ENDS)


def complain(text: str) -> None:
    """Print a line to standard error, with control characters made visible: errors quote names of files."""
    text = printable(text)
    if sys.stderr.isatty():
        from .wrapping import wrapped

        text = wrapped(text, shutil.get_terminal_size().columns)
    print(text, file=sys.stderr)


def write_json(text: str) -> None:
    """Print a line of JSON. Characters that standard output cannot encode become escapes."""
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        text = _NOT_ASCII.sub(lambda found: json.dumps(found[0])[1:-1], text)
    sys.stdout.write(text + "\n")


def message_text(message: Message) -> str:
    """Return everything in a message, one paragraph a part."""
    return "\n".join(piece for part in message.parts for piece in _pieces(part))


def shortened(text: str, lines: int = 8, width: int = 160) -> str:
    """Return the first and the last lines, cut at `width`, with the number of lines between them."""
    every = text.rstrip().split("\n")
    kept = every if len(every) <= lines else [*every[: lines - 3], "", *every[-2:]]
    cut = [line if len(line) <= width else f"{beginning_of(line, width - 1)}…" for line in kept]
    if len(every) > lines:
        cut[lines - 3] = f"… {plural(len(every) - lines + 1, 'more line')}, --full shows all"
    return "\n".join(cut)


def beginning(message: Message, width: int = 60) -> str:
    """Return the first words of a message on one line."""
    return brief(printable(message_text(message)[: 4 * width]), width)


def brief(text: str, width: int = 72) -> str:
    """Return the beginning of a text on one line."""
    line = " ".join(text[: 8 * width].split())
    return line if len(line) <= width else f"{beginning_of(line, width - 1)}…"


def _pieces(part: Part) -> Iterator[str]:
    match part:
        case Text(text=text):
            yield text
        case Reasoning(text=text):
            yield f"(thought) {text}" if text else "(thought, encrypted)"
        case ToolCall(call_id=call_id, name=name, arguments=arguments):
            yield f"→ {name} {arguments}  [{call_id}]"
        case ToolResult(call_id=call_id, state=state, content=content):
            if state != "ok":
                yield f"({state})"
            for nested in content:
                yield from _pieces(nested)
        case Media(mime=mime, source=source, data=data):
            yield (
                f"[{mime or 'image'}, {count(len(data) * 3 // 4)} bytes]" if source == "base64" else f"[{mime} {data}]"
            )
        case Opaque(kind=kind, format=form, body=body):
            yield f"[{kind} of {form}] {body}"
