"""Markdown as safe markup: headings, lists, code, tables, emphasis. Links are text with their address.

markdown-it-py reads the text; this module writes the markup, so that no other element, attribute or address occurs.
HTML in the text is shown as text. Line breaks and backslashes stay, because a person wants to read what the model read.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import Any

from markupsafe import Markup

from .characters import visible
from .code import highlight, language_of_file

__all__ = ["looks_like_markdown", "open_fence", "render_markdown"]

_SIGNS = re.compile(
    r"^(?:#{1,6} \S|```|~~~| {0,3}(?:[-*+]|\d{1,9}[.)]) \S|\|.*\|[ \t]*$|> \S)"
    r"|\*\*[^\s*][^*\n]{0,200}\*\*|`[^`\n]{1,200}`",
    re.MULTILINE,
)
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})([^\n]*)")

_BLOCKS = {
    "blockquote": "blockquote", "bullet_list": "ul", "ordered_list": "ol", "list_item": "li", "table": "table",
    "thead": "thead", "tbody": "tbody", "tr": "tr", "th": "th", "td": "td", "strong": "strong", "em": "em", "s": "s",
}  # fmt: skip
"""The element of each kind of token that has an inside, but for headings and paragraphs."""


def looks_like_markdown(text: str) -> bool:
    """Return whether a text has a heading, a list, code, a table, a quotation or bold words."""
    return _SIGNS.search(text) is not None


def open_fence(lines: Sequence[str]) -> str:
    """Return the first line of the code block that is open after these lines; "" if there is none."""
    fence = begin = ""
    for line in lines:
        match = _FENCE.match(line)
        if not match:
            continue
        if not fence:
            if match[1][0] != "`" or "`" not in match[2]:
                fence, begin = match[1], line
        elif match[1][0] == fence[0] and len(match[1]) >= len(fence) and not match[2].strip():
            fence = begin = ""
    return begin


@cache
def _parser() -> Any:
    from markdown_it import MarkdownIt  # Takes 20 ms to import.

    parser = MarkdownIt("commonmark", {"html": False, "maxNesting": 20})
    # These rules would show another text than the model read, or none. An indented line is rarely meant as code.
    unused = ["normalize", "text_join", "code", "reference", "entity", "html_block", "html_inline"]
    return parser.enable(["table", "strikethrough"]).disable(unused)


def render_markdown(text: str) -> Markup:
    """Return the markup of a Markdown text of at most some ten thousand characters."""
    try:
        tokens = _parser().parse(text)
    except (ValueError, RecursionError, IndexError):  # Half of a surrogate pair in an address, or deep nesting.
        return Markup('<pre class="c-long">{}</pre>').format(visible(text))
    return Markup('<div class="c-prose">{}</div>').format(Markup("".join(map(_block, tokens))))


def _block(token: Any) -> str:
    kind, _, side = token.type.rpartition("_")
    # Blocks inside have the direction of the outermost one: `auto` does not look into elements with a `dir`.
    direction = "" if token.level else ' dir="auto"'
    match token.type:
        case "inline":
            return _inline(token.children or ())
        case "fence" | "code_block":
            return _code(token)
        case "hr":
            return '<hr class="c-rule">'
        case "paragraph_open" | "paragraph_close" if token.hidden:
            return '<p class="c-tight">' if side == "open" else "</p>\n"
        case "paragraph_open" | "heading_open":
            classes = "c-p" if kind == "paragraph" else f"c-h{token.tag[1]}"
            return f'<p class="{classes}"{direction}>'
        case "paragraph_close" | "heading_close":
            return "</p>\n"
        case "ordered_list_open":
            start = token.attrGet("start")
            return f'<ol start="{int(start)}"{direction}>' if start else f"<ol{direction}>"
        case "table_open":
            return f'<div class="c-scroll" tabindex="0"><table class="c-table"{direction}>'
        case "table_close":
            return "</table></div>"
        case _ if kind in _BLOCKS:
            return f"<{_BLOCKS[kind]}{direction}>" if side == "open" else f"</{_BLOCKS[kind]}>"
        case _:
            return str(visible(token.content))


def _code(token: Any) -> str:
    words = token.info.split()
    language = words[0].lower() if words else ""
    name = f'<span class="c-language">{visible(token.info)}</span>' if token.info.strip() else ""
    lines = token.content.removesuffix("\n").split("\n")
    code = "\n".join(highlight(lines, language_of_file(f"x.{language}") or language[:20]))
    return f'<div class="c-fence">{name}<pre class="c-code">{code}</pre></div>'


def _inline(children: Sequence[Any]) -> str:
    pieces: list[str] = []
    addresses: list[str] = []
    for child in children:
        kind, _, side = child.type.rpartition("_")
        match child.type:
            case "code_inline":
                pieces.append(f"<code>{visible(child.content)}</code>")
            case "text_special":  # A backslash and the character after it: often a path of Windows.
                pieces.append(str(visible(child.markup)))
            case "softbreak" | "hardbreak":
                pieces.append("\n")
            case "link_open":
                addresses.append(_target(child, "href"))
                pieces.append('<span class="c-link">')
            case "link_close":
                address = addresses.pop() if addresses else ""
                pieces.append("</span>" + _address(address))
            case "image":
                pieces.append(f'<span class="c-link">{visible(child.content)}</span>')
                pieces.append(_address(_target(child, "src")))
            case _ if kind in _BLOCKS:
                pieces.append(f"<{'' if side == 'open' else '/'}{_BLOCKS[kind]}>")
            case _:
                pieces.append(str(visible(child.content)))
    return "".join(pieces)


def _target(token: Any, name: str) -> str:
    """Return the address of a link with its title."""
    return " ".join([str(text) for text in (token.attrGet(name), token.attrGet("title")) if text])


def _address(address: str) -> str:
    return f' <span class="c-address">{visible(address)}</span>' if address else ""
