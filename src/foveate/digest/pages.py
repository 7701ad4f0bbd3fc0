"""Pages and prose: titles, headings, links and fields; first sentences of paragraphs."""

from __future__ import annotations

import re
from collections import Counter
from itertools import groupby
from operator import itemgetter

from .source import Source
from .values import Line, Reading

__all__ = ["read_page", "read_prose"]

_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[^\W\da-z_]|[`*\"(\[])|(?<=[。！？؟।])\s*(?=\S)")
_BLOCK = re.compile(
    r"(?=<(?:h[1-6]|p|li|div|tr|table|form|section|article|header|footer|nav|button|input|select|textarea|title|body|ul|ol)\b)",
    re.IGNORECASE,
)
_UNSEEN = re.compile(r"<(?:(script|style|svg)\b|!--)", re.IGNORECASE)
_ENDS = {
    name: re.compile(rf"</{name}\s*>" if name else "-->", re.IGNORECASE) for name in ("script", "style", "svg", "")
}
"""The end of what no reader of a page sees, by the name of its element; "" for a comment."""
_HEADING = re.compile(r"\s*<(title|h[1-6])\b[^>]*>", re.IGNORECASE)
_LINK = re.compile(
    r"<a\b[^<>]{0,600}?\bhref=(?:\"([^\"]{1,300})\"|'([^']{1,300})')[^<>]{0,600}>(.{0,300}?)</a\s*>", re.IGNORECASE
)
_TAG = re.compile(r"</?[a-zA-Z!][^<>]{0,600}>?")
_ATTRIBUTE = re.compile(
    r"\b(?:action|id|name|value|title|alt|placeholder|aria-label|src)=(\"[^\"]{1,200}\"|'[^']{1,200}')"
)
_FIELD = re.compile(r"\s*<(?:form|input|button|select|textarea|label|option)\b", re.IGNORECASE)
_ACTS = re.compile(r"\b(?:button|link|textbox|input|checkbox|radio|combobox|menuitem|option|tab|searchbox|heading)\b")


def read_page(source: Source) -> Reading:
    """Return headings, links with their addresses, fields, and the words of a page without markup."""
    body = "\n".join([row for _, row in source.rows])
    if "<" not in body:
        return _snapshot(source)
    lines: list[Line] = []
    links = above = 0
    above = -1
    for piece in _BLOCK.split(_without_unseen(body)):
        for row in piece.split("\n"):
            heading = _HEADING.match(row)
            linked = len(_LINK.findall(row))
            is_field = bool(_FIELD.match(row))
            text = _LINK.sub(lambda link: f" {_words(link[3])} <{link[1] or link[2]}> ", row)
            named = " ".join([found[1].strip("\"'") for found in _ATTRIBUTE.finditer(row)]) if is_field else ""
            text = f"{_words(text, keep_links=linked > 0)} {named}".strip()
            if not text:
                continue
            links += linked
            if heading and above >= 0 and lines[above].text.lstrip("# ") == text:
                continue  # Most pages repeat their title as the first heading.
            if heading:
                above = len(lines)
                level = 1 if heading[1].lower() == "title" else int(heading[1][1])
                lines.append(Line(0, f"{'#' * level} {text}", 1.2, must=4 if level == 1 else 2))
            else:
                line = Line(0, text, 1.2 if linked or is_field else 1.0, must=1 if linked or is_field else 0)
                line.above = above
                lines.append(line)
    lines = _once(lines) if above < 0 else lines
    if lines:
        lines[0].must = max(lines[0].must, 3)
    return Reading(lines, f"{links} links" if links else "")


def _without_unseen(body: str) -> str:
    """Return a page without scripts, styles, drawings and comments. Those that do not end stay.

    Each end that does not exist is looked for once: one expression for begin and end would take quadratic time.
    """
    pieces: list[str] = []
    endless: set[str] = set()
    at = 0
    for begin in _UNSEEN.finditer(body):
        name = (begin[1] or "").lower()
        if begin.start() < at or name in endless:
            continue
        end = _ENDS[name].search(body, begin.end())
        if end is None:
            endless.add(name)
            continue
        pieces += [body[at : begin.start()], " "]
        at = end.end()
    return "".join([*pieces, body[at:]])


def _words(text: str, keep_links: bool = False) -> str:
    """Return a text without tags. `keep_links`: an address in angle brackets is no tag."""
    if keep_links:
        text = re.sub(r"<(?=[/.#?]|\w+[:/.])(?!/\w+>)([^<>\s]+)>", "\x01\\1\x02", text)
    return " ".join(_TAG.sub(" ", text).split()).replace("\x01", "<").replace("\x02", ">")


def _snapshot(source: Source) -> Reading:
    """Return the lines of an accessibility snapshot. Buttons, links and fields weigh more."""
    lines = [
        Line(number, row.strip(), 1.2 if _ACTS.search(row.strip()[:80]) else 1.0)
        for number, row in source.rows
        if row.strip()
    ]
    if lines:
        lines[0].must = 3
    return Reading(lines)


def read_prose(source: Source) -> Reading:
    """Return sentences below their headings. Headings and the beginnings of paragraphs weigh more."""
    lines: list[Line] = []
    fresh = True
    rows = source.rows
    if not source.escaped:
        # A long line is stored in pieces of one number, and a sentence may span them.
        rows = [(number, "".join([row for _, row in pieces])) for number, pieces in groupby(rows, itemgetter(0))]
    for number, row in rows:
        text = row.strip()
        if not text:
            fresh = True
            continue
        if text.startswith("#"):
            lines.append(Line(number, text, 1.2, must=2 if text[1:2] in " #" else 0))
            fresh = True
            continue
        for sentence in _SENTENCE.split(text) if len(text) > 160 else (text,):
            lines.append(Line(number, sentence, 1.1 if fresh else 1.0))
            fresh = False
    lines = _once(lines)
    if lines:
        lines[0].must = 3
    return Reading(lines)


def _once(lines: list[Line]) -> list[Line]:
    """Return identical lines once, with their number."""
    counts = Counter([line.text for line in lines])
    first: dict[str, Line] = {}
    for line in lines:
        first.setdefault(line.text, line)
    for text, line in first.items():
        if counts[text] > 2:
            line.text = f"{text} (×{counts[text]})"
    return list(first.values())
