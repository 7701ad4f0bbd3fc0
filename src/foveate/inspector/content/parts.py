"""Parts of messages for people: text, reasoning, calls, results, media and blocks of a provider.

A part has a path in its message: `0` is the first part, `0.1` the second part of a result that is the first part. A
page of a long part is asked for by this path.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from markupsafe import Markup
from msgspec import Struct

from ...core.messages import Media, Message, Opaque, Part, Reasoning, Text, ToolCall, ToolResult
from ...digest import describe
from .calls import file_in, headline_of_call, render_arguments
from .characters import element, visible
from .code import language_of_file
from .lines import FOLDED, PAGE, Limits
from .media import render_media
from .texts import Place, block_of_tree, kind_of, render_text
from .trees import Literal, Node, child_at, parse_tree

__all__ = ["Links", "headline", "part_at", "render", "render_page", "text_of"]

_WORDS = frozenset({"prose", "output", "code", "log", "listing", "matches", "empty"})
"""Kinds of text that are Markdown if a model or a person wrote it."""
_HEADLINE = 160
"""Characters of a headline."""


class Links(Struct, frozen=True):
    """The URLs of pages with more of a part. Without them, what is left out is only counted."""

    text: Callable[..., str] | None = None
    """Takes the path of a part, and `first`, `form` and `at` as keywords. Returns the URL of `render_page`."""
    media: Callable[[str], str | None] | None = None
    """Takes the path of a part. Returns the URL of its bytes; None for media that the page does not show."""


def render(
    part: Part,
    *,
    path: str = "0",
    call: ToolCall | None = None,
    links: Links | None = None,
    limits: Limits = FOLDED,
    form: str = "",
    is_page: bool = False,
) -> Markup:
    """Return a part as markup, within limits.

    `path`: of the part in its message. `call`: the call that a result answers; the file that it names chooses the
    language. `form`: `plain` shows texts as they are, such as digests and folds, which have no other form. `is_page`:
    this is the page of the part, and not the row of its message.
    """
    links = links or Links()
    place = Place(_page_url(links, path), "", is_page)
    match part:
        case Text(text=text):
            return render_text(text, limits, place, kind=_spoken_kind(text), form=form)
        case Reasoning():
            return _reasoning(part, limits, place)
        case ToolCall():
            return render_arguments(part.arguments, limits, place)
        case ToolResult():
            inner = [
                render(each, path=f"{path}.{index}", links=links, limits=limits, is_page=is_page)
                if not isinstance(each, Text)
                else _answered(each.text, limits, Place(_page_url(links, f"{path}.{index}"), "", is_page), call, form)
                for index, each in enumerate(part.content)
            ]
            return Markup("").join(inner) or element("p", "c-empty", "empty")
        case Media():
            return render_media(part, links.media(path) if links.media else None)
        case Opaque():
            return _opaque(part, limits, place)


def render_page(
    message: Message,
    path: str,
    *,
    links: Links,
    call: ToolCall | None = None,
    first: int = 1,
    form: str = "",
    at: str = "",
) -> Markup:
    """Return a page of a part, with links to the pages before and after it.

    `first`: the number of the first line or child, from 1. `form`: `plain` for the text as it is. `at`: the path of a
    value in the JSON of the part. Raises LookupError if the message has no such part or value.
    """
    part = part_at(message, path)
    place = Place(_page_url(links, path), at, True)
    text, kind, language = _page_text(part, message, path, call)
    if at or (first > 1 and isinstance(part, ToolCall)):
        value = child_at(parse_tree(text), at)
        if isinstance(value, Node):
            return block_of_tree(value, PAGE, place, first)
        if not isinstance(value, str) or isinstance(value, Literal):
            return element("pre", "c-long", str(value))
        return render_text(value, PAGE, place, first=first, form=form)
    is_text = isinstance(part, Text | Reasoning | Opaque) or (isinstance(part, ToolCall) and parse_tree(text) is None)
    if form == "plain" or is_text:
        return render_text(text, PAGE, place, kind=kind, language=language, first=first, form=form)
    return render(part, path=path, call=call, links=links, limits=PAGE, is_page=True)


def part_at(message: Message, path: str) -> Part:
    """Return the part at a path. Raises LookupError if there is none."""
    steps = path.split(".")
    if len(steps) > 2 or not all(step.isascii() and step.isdigit() and len(step) < 8 for step in steps):
        raise LookupError(path)
    part: Part = message.parts[int(steps[0])]
    if len(steps) == 1:
        return part
    if not isinstance(part, ToolResult):
        raise LookupError(path)
    return part.content[int(steps[1])]


def text_of(message: Message, path: str) -> str:
    """Return the whole text of a part: of a call its arguments. Raises LookupError if the message has no such text."""
    return _page_text(part_at(message, path), message, path, None)[0]


def headline(part: Part) -> Markup:
    """Return a part in one line: the kind, the size and the topic of a text, a tool with its argument."""
    match part:
        case ToolCall(name=name, arguments=arguments):
            return headline_of_call(name, arguments)
        case ToolResult():
            media = len(part.content) - len([each for each in part.content if isinstance(each, Text)])
            text = _brief(part.text) if part.text or not media else Markup()
            return text + (element("span", "c-size", f" {media} media") if media else Markup())
        case Text(text=text):
            return _brief(text)
        case Reasoning(text=text):
            return element("span", "c-brief", _line(text)) if text else element("span", "c-size", "encrypted reasoning")
        case Media():
            return element("span", "c-size", part.name or part.mime or "media")
        case Opaque(kind=kind):
            return element("span", "c-size", kind[:80])


def _page_url(links: Links, path: str) -> Callable[..., str] | None:
    make = links.text
    return (lambda **query: make(path, **query)) if make else None


def _spoken_kind(text: str) -> str:
    """Return the kind of what a person or a model wrote: Markdown, unless it is data or a diff."""
    kind = kind_of(text)
    return "markdown" if kind in _WORDS else kind


def _answered(text: str, limits: Limits, place: Place, call: ToolCall | None, form: str) -> Markup:
    """Return what a tool answered. The file that the call names chooses the language of code."""
    kind, language = _answer_kind(text, call)
    return render_text(text, limits, place, kind=kind, language=language, form=form)


def _answer_kind(text: str, call: ToolCall | None) -> tuple[str, str]:
    kind = kind_of(text)
    language = language_of_file(file_in(call.arguments)) if call else ""
    # Of a file in a known language every stretch is code, also comments and data.
    kind = "code" if language and kind in ("prose", "output", "table", "json") and _is_numbered(text) else kind
    return kind, language


def _is_numbered(text: str) -> bool:
    """Return whether a file viewer printed numbers before the first lines."""
    return _NUMBERED.search(text[:400]) is not None


_NUMBERED = re.compile(r"^ {0,8}\d{1,9}(?:→|\t|\||: )", re.MULTILINE)


def _page_text(part: Part, message: Message, path: str, call: ToolCall | None) -> tuple[str, str, str]:
    """Return the text of a part with its kind and language, "" for those that the text itself decides."""
    match part:
        case Text(text=text) if "." in path or message.role == "tool":
            return text, *_answer_kind(text, call)
        case Text(text=text):
            return text, _spoken_kind(text), ""
        case Reasoning(text=text):
            return text, "markdown", ""
        case ToolCall(arguments=arguments):
            return arguments, "", ""
        case Opaque(body=body):
            return body, "json", ""
        case ToolResult():
            return part.text, "", ""
        case Media():
            raise LookupError(path)


def _reasoning(part: Reasoning, limits: Limits, place: Place) -> Markup:
    facts = ["signed"] if part.signature else []
    facts += [f"encrypted, {len(part.encrypted):,} characters"] if part.encrypted else []
    facts += ["no readable text"] if not part.text else []
    badges = Markup("").join([element("span", "c-badge", fact) for fact in facts])
    text = render_text(part.text, limits, place, kind="markdown") if part.text else Markup()
    return Markup('<div class="c-reasoning">{}{}</div>').format(badges, text)


def _opaque(part: Opaque, limits: Limits, place: Place) -> Markup:
    head = Markup('<span class="c-badge">{}</span><span class="c-badge">{}</span>').format(
        visible(part.kind[:80]), visible(part.format[:80])
    )
    return head + render_text(part.body, limits, place, kind="json")


def _brief(text: str) -> Markup:
    if len(text) <= _HEADLINE and "\n" not in text.strip():
        return element("span", "c-brief", text.strip())
    about = describe(text)
    return Markup('<span class="c-brief">{}</span> <span class="c-size">{}, {}</span>').format(
        visible(about.gist), visible(about.kind), about.counted_items
    )


def _line(text: str) -> str:
    line = " ".join(text[: 4 * _HEADLINE].split())
    return line[:_HEADLINE] + ("…" if len(line) > _HEADLINE else "")
