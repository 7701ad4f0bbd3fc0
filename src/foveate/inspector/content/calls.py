"""Tool calls for people: commands as code, edits of files as diffs, new files as code, other arguments by name.

The names of arguments decide, not those of tools: agents name their tools in many ways, and their arguments in few.
"""

from __future__ import annotations

import shlex
from typing import Any

from markupsafe import Markup

from .characters import element, visible
from .code import language_of_file
from .diffs import DiffRow, diff_lines, render_diff_rows
from .lines import Limits
from .texts import Place, block_of_tree, render_text, show_more
from .trees import Node, parse_tree, short

__all__ = ["file_in", "headline_of_call", "render_arguments", "render_diff"]

_FILES = ("file_path", "filePath", "path", "filename", "file", "target_file", "notebook_path", "absolute_path")
_COMMANDS = {
    "command": "bash",
    "cmd": "bash",
    "script": "bash",
    "code": "",
    "sql": "postgresql",
    "query_sql": "postgresql",
}
"""Arguments that hold code, with its language; "" if the lines decide."""
_CHANGES = (
    ("old_string", "new_string"), ("oldString", "newString"), ("old_str", "new_str"), ("oldText", "newText"),
    ("old_text", "new_text"), ("search", "replace"), ("old_content", "new_content"),
)  # fmt: skip
"""Arguments with the text before an edit and after it."""
_CONTENTS = ("content", "file_text", "new_source", "contents")
"""Arguments with a whole file."""
_PATCHES = ("*** Begin Patch", "diff --git ", "--- ")
_SHORT = 160
"""Characters of an argument that stands in a line with its name."""
_HEADLINE = 160
"""Characters of a headline."""


def file_in(arguments: str) -> str:
    """Return the path of the file that the arguments of a call name; "" if they name none."""
    fields = _fields(parse_tree(arguments)) if len(arguments) < 100_000 else {}
    return next((value for name in _FILES if isinstance(value := fields.get(name), str) and value), "")


def headline_of_call(name: str, arguments: str) -> Markup:
    """Return the tool with its most telling argument in one line: a command, a file, or the first short text."""
    fields = _fields(parse_tree(arguments[:MOST_IN_HEADLINE]))
    known = [fields.get(key) for key in (*_COMMANDS, *_FILES, "pattern", "query", "url", "description", "prompt")]
    values = [_as_command(value) for value in (*known, *fields.values())]
    value = next((text for text in values if text.strip()), "" if fields else arguments)
    line = " ".join(value[: 4 * _HEADLINE].split())
    return Markup('<span class="c-tool">{}</span> <span class="c-brief">{}</span>').format(
        visible(name[:80]), visible(line[:_HEADLINE] + ("…" if len(line) > _HEADLINE else ""))
    )


MOST_IN_HEADLINE = 20_000
"""Characters of arguments that are read for a headline."""


def render_arguments(arguments: str, limits: Limits, place: Place) -> Markup:
    """Return the arguments of a call. Arguments that are no JSON object are shown as text."""
    tree = parse_tree(arguments)
    if tree is None or not tree.is_object:
        return render_text(arguments, limits, place)
    fields = _fields(tree)
    file = next((value for name in _FILES if isinstance(value := fields.get(name), str)), "")
    hidden: set[str] = set()
    blocks: list[Markup] = []
    for old, new in _CHANGES:
        if isinstance(fields.get(old), str) and isinstance(fields.get(new), str):
            hidden |= {old, new}
            blocks.append(render_diff(fields[old], fields[new], limits, place.page()))
    edits = [edit for _, edit in inner.pairs()] if isinstance(inner := fields.get("edits"), Node) else []
    if edits and all(_change(edit) for edit in edits):
        hidden.add("edits")
        for edit in edits[: limits.lines]:
            old_text, new_text = _change(edit) or ("", "")
            blocks.append(render_diff(old_text, new_text, limits, place.page()))
        if len(edits) > limits.lines:
            blocks.append(show_more(place.page(), f"{len(edits) - limits.lines:,} more edits"))
    shown = [
        _argument(index, key, value, limits, place, file)
        for index, (key, value) in enumerate(tree.pairs(0, limits.lines))
        if key not in hidden
    ]
    if tree.size > limits.lines:
        shown.append(show_more(place.page(limits.lines + 1), f"{tree.size - limits.lines:,} more arguments"))
    return Markup('<div class="c-arguments">{}</div>').format(Markup("").join([*shown, *blocks]))


def render_diff(old: str, new: str, limits: Limits, url: str | None = None) -> Markup:
    """Return the difference of two texts, with the changed words inside of changed lines. `url`: of the whole."""
    rows = diff_lines(old, new)
    shown: list[DiffRow] = []
    room = limits.characters
    for row in rows[: limits.lines]:
        shown.append(DiffRow(row.mark, row.text[: limits.width], row.changed, max(0, len(row.text) - limits.width)))
        room -= min(len(row.text), limits.width) + 1
        if room < 0:
            break
    lines = "\n".join(render_diff_rows(shown))
    cut = len(shown) < len(rows) or any(len(row.text) > limits.width for row in rows)
    foot = (
        Markup('<p class="c-foot">{}</p>').format(show_more(url, f"Show all {len(rows):,} lines", "arguments"))
        if cut
        else ""
    )
    return Markup('<div class="c-block" data-kind="diff"><pre class="c-diff">{}</pre>{}</div>').format(
        Markup(lines), foot
    )


def _argument(index: int, key: str, value: Any, limits: Limits, place: Place, file: str) -> Markup:
    name = element("span", "c-name", key[:_SHORT])
    below = Place(place.url, str(index), place.is_page)
    if key in _COMMANDS and (command := _as_command(value)):
        shown = render_text(command, limits, below, kind="code", language=_COMMANDS[key])
        return Markup('<div class="c-argument">{}</div>').format(shown if key in ("command", "cmd") else name + shown)
    if isinstance(value, Node) and value.size:
        return Markup('<div class="c-argument">{}{}</div>').format(name, block_of_tree(value, limits, below))
    if not isinstance(value, str):
        return Markup('<div class="c-argument c-short">{}{}</div>').format(name, element("span", "c-num", short(value)))
    if len(value) <= _SHORT and "\n" not in value:
        return Markup('<div class="c-argument c-short">{}{}</div>').format(name, element("span", "c-value", value))
    kind = "diff" if value.lstrip().startswith(_PATCHES) else ""
    language = language_of_file(file) if key in _CONTENTS and file else ""
    shown = render_text(value, limits, below, kind=kind or ("code" if language else ""), language=language)
    return Markup('<div class="c-argument">{}{}</div>').format(name, shown)


def _fields(tree: Node | None) -> dict[str, Any]:
    return dict(tree.pairs()) if tree is not None and tree.is_object else {}


def _change(edit: Any) -> tuple[str, str] | None:
    fields = _fields(edit if isinstance(edit, Node) else None)
    for old, new in _CHANGES:
        if isinstance(fields.get(old), str) and isinstance(fields.get(new), str):
            return fields[old], fields[new]
    return None


def _as_command(value: Any) -> str:
    """Return a command that is a text or a list of words, as one text; "" for another value."""
    words = [word for _, word in value.pairs()] if isinstance(value, Node) else []
    if words and all(isinstance(word, str) for word in words):
        if len(words) == 3 and words[1] in ("-c", "-lc"):  # A shell that runs a command.
            return str(words[2])
        return "" if value.is_object else shlex.join(words)
    return value if isinstance(value, str) else ""
