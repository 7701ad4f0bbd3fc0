"""Texts for people: the kind of a text chooses its form, and a window of its lines is shown.

The kinds are those of the digests (`digest.description`). Each form is a function of a window. A reader who wants the
text itself asks for the form `plain`.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterable, Sequence

from markupsafe import Markup
from msgspec import Struct
from msgspec.structs import replace

from ...digest import describe
from ...digest.listings import MATCHED, UNNUMBERED
from ...digest.logs import failure_signs, reports_failure
from ...digest.pages import read_page
from ...digest.source import Source, read_source, remove_numbers
from ...digest.tables import split_row
from ...digest.wrappings import unwrap, wrapper_end
from .characters import element, visible
from .code import highlight, language_of_lines
from .diffs import render_diff_rows, rows_of_patch
from .lines import Limits, Window, count_lines, window_of
from .markdown import looks_like_markdown, open_fence, render_markdown
from .terminal import has_escapes, render_terminal
from .trees import Node, TreeLimits, parse_tree, render_tree

__all__ = ["MOST_BYTES", "Place", "block_of_tree", "kind_of", "render_text", "show_more"]

MOST_BYTES = 400_000
"""Bytes of a block's HTML. Where hidden characters make it longer, fewer lines are shown."""
_TREE_IN_ROW = 200_000
"""Characters of JSON that are read as a tree for a row; longer texts only for a page."""
_ESCAPES_IN = 20_000
"""Characters at the begin of a text in which escape sequences are looked for."""
_ENDS_MATTER = frozenset({"output", "log", "terminal"})
"""Kinds whose last lines say how it ended."""

_WRAPS = frozenset({"markdown", "prose"})
"""Kinds whose lines are paragraphs."""
_SLACK = 1.3
"""A row shows a text that is a little longer than its limits, so that a link never stands for a few words."""


class Place(Struct, frozen=True):
    """The place of a text: its path in a tree, and the addresses of its pages."""

    url: Callable[..., str] | None = None
    """Returns the URL of a page. Takes `first` (the number of a line or child), `form` and `at`. None: no pages."""
    at: str = ""
    """The path of the text in a JSON tree; "" if it is a text of its own."""
    is_page: bool = False
    """Whether this is the page of the text, and not the row of its message."""

    def page(self, first: int = 1, form: str = "") -> str | None:
        """Return the URL of the page from this line."""
        return self.url(first=first, form=form, at=self.at) if self.url else None


def kind_of(text: str) -> str:
    """Return the kind of a text: one of `digest.describe`, or `terminal` for escape sequences of a terminal.

    A text in the fields of a protocol is shown with them, as the model saw it.
    """
    if has_escapes(text[:_ESCAPES_IN]):
        return "terminal"
    if not text.endswith(unwrap(text).text):
        return "json" if text[:1] in ("{", "[") else "output"
    return describe(text).kind


def render_text(
    text: str,
    limits: Limits,
    place: Place,
    *,
    kind: str = "",
    language: str = "",
    first: int = 1,
    form: str = "",
) -> Markup:
    """Return a window of a text in the form of its kind, with links to what is left out.

    `kind`: if it is known, as `markdown` for the words of a model. `language`: the pygments name for code. `first`: the
    number of the first line, or of the first child of a tree, from 1. `form`: `plain` for the lines as they are.
    """
    if not text.strip():
        return element("p", "c-empty", f"{len(text):,} blank characters" if text else "empty")
    header = text[: wrapper_end(text)]
    body = text[len(header) :] if form != "plain" else text
    kind = "plain" if form == "plain" else kind or kind_of(body if header else text)
    wrapper = (
        element("pre", "c-wrapper", header.rstrip("\n")) if header and first == 1 and form != "plain" else Markup()
    )
    if not body.strip():
        return wrapper
    if kind == "json" and (tree := _tree(body, limits, place, first)):
        return wrapper + tree
    if kind == "page" and "<" in body[:3_000]:
        body = _page_text(body)
    if kind in _WRAPS:
        limits = replace(limits, width=limits.characters)
    if not place.is_page and len(body) < _SLACK * limits.characters and count_lines(body) <= _SLACK * limits.lines:
        limits = Limits(2 * limits.lines, 2 * limits.characters, 2 * limits.characters)
    while True:
        window = window_of(body, limits, first, ends=kind in _ENDS_MATTER)
        shown = _form(kind, window, body, language)
        if len(shown) <= MOST_BYTES or limits.lines == 1:
            break
        limits = limits.half
    return wrapper + _block(kind, shown, window, place, form)


def _form(kind: str, window: Window, text: str, language: str) -> Markup:
    rows = [row for _, row, _ in window.rows]
    match kind:
        case "code" | "edit":
            return _numbered(window, language, kind == "code")
        case "json":
            return _lines(window, highlight(rows, "json"))
        case "diff":
            return _lines(window, render_diff_rows(rows_of_patch(rows)), "c-diff")
        case "terminal":
            return _lines(window, render_terminal(rows), "c-output")
        case "matches":
            return _lines(window, map(_match, rows))
        case "output" | "log":
            signs = failure_signs(window.text)
            return _lines(window, [_reported(row, signs) for row in rows], "c-output")
        case "page":
            return _lines(window, map(_headed, rows), "c-text")
        case "table":
            return _table(window, text) or _lines(window, map(visible, rows))
        case "markdown" | "prose":
            return _prose(window, text, kind == "markdown")
        case _:
            return _lines(window, map(visible, rows))


# --------------------------------------------------------------------------------------------------------------- forms


def _lines(window: Window, shown: Iterable[Markup], classes: str = "") -> Markup:
    """Return lines one below the other, with a note for each cut line and each gap."""
    pieces: list[str] = []
    expected = window.first
    for (number, row, cut), markup in zip(window.rows, shown, strict=True):
        if number != expected:
            pieces.append(f'<span class="c-cut">… {number - expected:,} lines …</span>')
        rest = f'<span class="c-cut">… {len(row) + cut:,} characters in this line</span>' if cut else ""
        pieces.append(f"{markup}{rest}")
        expected = number + 1
    return Markup(f'<pre class="{classes or "c-lines"}">' + "\n".join(pieces) + "</pre>")


def _numbered(window: Window, language: str, has_numbers: bool) -> Markup:
    """Return code with the numbers that a file viewer printed before its lines, in a column of their own."""
    source = Source([(number, row) for number, row, _ in window.rows], window.text)
    remove_numbers(source)
    rows = [row for _, row in source.rows]
    shown = highlight(rows, language or language_of_lines(rows))
    if not any(before[1] != after for before, after in zip(window.rows, rows, strict=True)):
        return _lines(window, shown, "c-code")
    marked = [
        Markup('<span class="c-line" data-n="{}"></span>{}').format(number if row != before[1] else "", markup)
        for before, (number, row), markup in zip(window.rows, source.rows, shown, strict=True)
    ]
    return _lines(window, marked, "c-code c-numbered")


def _match(row: str) -> Markup:
    """Return a line that a search found: its path, its number and the text."""
    if match := MATCHED.match(row):
        return Markup('<span class="c-path">{}</span>{}<span class="c-num">{}</span>{}{}').format(
            visible(match[1]), match[2], match[3], match[2], visible(row[match.end() :])
        )
    if match := UNNUMBERED.match(row):
        return Markup('<span class="c-path">{}</span>:{}').format(visible(match[1]), visible(row[match.end() :]))
    return visible(row)


def _reported(row: str, signs: Sequence[str]) -> Markup:
    return element("span", "c-bad", row) if reports_failure(row, signs) else visible(row)


def _headed(row: str) -> Markup:
    return element("span", "c-heading", row) if row.startswith("#") else visible(row)


def _page_text(text: str) -> str:
    """Return headings, words and links of an HTML page as lines."""
    return "\n".join([line.text for line in read_page(read_source(text)).lines]) or text


def _table(window: Window, text: str) -> Markup | None:
    rows = [row for _, row, cut in window.rows if not cut]
    if len(rows) < len(window.rows):
        return None
    if window.first > 1:
        rows.insert(0, window_of(text, Limits(1, 2_000, 2_000)).text)
    cells = _split_table(rows)
    return _render_rows(cells) if cells else None


def _prose(window: Window, text: str, is_markdown: bool) -> Markup:
    """Return Markdown as it is meant; other prose, the words of a program, as lines."""
    rows = [row for _, row, _ in window.rows]
    begin = ""
    if window.first > 1 and window.rows:
        before = window_of(text, Limits(window.first - 1, 200, 5_000_000))
        begin = open_fence([row for _, row, _ in before.rows])
    if not (is_markdown or begin or looks_like_markdown(window.text)):
        return _lines(window, map(visible, rows))
    if not window.is_whole and rows and open_fence(rows) == rows[-1]:
        rows.pop()  # A code block without its first line.
    shown = render_markdown("\n".join([begin, *rows] if begin else rows))
    _, row, cut = window.rows[-1] if window.rows else (0, "", 0)
    return shown + (element("p", "c-cut", f"… {len(row) + cut:,} characters in this line") if cut else Markup())


def _tree(text: str, limits: Limits, place: Place, first: int) -> Markup | None:
    """Return JSON as a tree; None if it is none, or too long for a row."""
    if not place.is_page and len(text) > _TREE_IN_ROW:
        return None
    tree = parse_tree(text)
    return block_of_tree(tree, limits, place, first) if tree is not None else None


def block_of_tree(tree: Node, limits: Limits, place: Place, first: int = 1) -> Markup:
    """Return a tree from the child of this number (from 1), with links to what is left out."""

    def more(path: str, child: int) -> str | None:
        return place.url(first=child + 1, form="", at=path) if place.url else None

    while True:
        shown = render_tree(tree, _tree_limits(limits, place), more, at=place.at, first=first - 1)
        if len(shown) <= MOST_BYTES or limits.lines == 1:
            return Markup('<div class="c-block" data-kind="json">{}</div>').format(shown)
        limits = limits.half


def _tree_limits(limits: Limits, place: Place) -> TreeLimits:
    return TreeLimits(limits.lines, limits.lines, 3 if place.is_page else 1, limits.width)


# ---------------------------------------------------------------------------------------------------------------- block


def _block(kind: str, shown: Markup, window: Window, place: Place, form: str) -> Markup:
    """Return a form with a line below it that says how much there is, and leads there."""
    links: list[Markup] = []
    if place.is_page:
        links += _pages(window, place, form)
    elif not window.is_whole:
        links.append(show_more(place.page(form=form), f"Show all {_amount(window)}", "block"))
    if place.is_page and place.url:
        if form != "plain":
            links.append(show_more(place.page(form="plain"), "As plain text", "block"))
        if not place.at:
            links.append(
                Markup('<a class="c-download" href="{}" download>Download</a>').format(place.page(form="file"))
            )
    foot = Markup('<p class="c-foot">{}</p>').format(Markup(" ").join(links)) if links else Markup()
    return Markup('<div class="c-block" data-kind="{}">{}{}</div>').format(kind, shown, foot)


def _pages(window: Window, place: Place, form: str) -> list[Markup]:
    is_all = window.first == 1 and window.last == window.lines
    place_in_text = "" if is_all else f"Lines {window.first:,} to {window.last:,} of "
    links = [element("span", "c-range", place_in_text + _amount(window))]
    if window.first > 1:
        links.append(show_more(place.page(max(1, window.first - max(1, len(window.rows))), form), "Earlier", "block"))
    if window.last < window.lines:
        links.append(show_more(place.page(window.last + 1, form), "More", "after"))
    return links


def _amount(window: Window) -> str:
    lines = f"{window.lines:,} line{'' if window.lines == 1 else 's'}"
    characters = f"{window.characters:,} characters"
    return characters if window.lines == 1 else f"{lines}, {characters}" if window.characters > 2_000 else lines


def show_more(url: str | None, text: str, way: str = "here") -> Markup:
    """Return a link to a page, or only its text if there is no page.

    `way`: what a script replaces by the page: the whole `block`, the line below it (`after`), or the link (`here`).
    """
    if url is None:
        whole = text.removeprefix("Show all ")
        return element("span", "c-cut", f"{whole} in all" if whole != text else text)
    return Markup('<a class="c-more" data-way="{}" href="{}">{}</a>').format(way, url, text)


_MOST_COLUMNS = 60
_MOST_CHARACTERS = 300
"""Characters of a cell that are shown."""
_NUMBER = re.compile(r"\s*[$€£]?\s*[-+]?\d[\d,]*(?:\.\d+)?\s*(?:%|[A-Za-z]{1,3})?\s*\Z")
_RULE = frozenset("|-: +=")


def _split_table(lines: Sequence[str]) -> list[list[str]] | None:
    """Return the cells of each row, the names of the columns first; None if the lines are no table."""
    rows = [line for line in lines if line.strip()]
    if len(rows) < 2:
        return None
    mark = max(("\t", "|", ",", ";"), key=lambda each: rows[0].count(each))
    mark = mark if mark in rows[0] else ""
    cells = [row for row in (_cells(line, mark) for line in rows if not set(line.strip()) <= _RULE) if row]
    if len(cells) < 2:
        return None
    columns = len(cells[0])
    agree = sum([1 for row in cells if len(row) == columns])
    # If white space separates the columns, an empty cell moves the later cells to the left.
    if not 2 <= columns <= _MOST_COLUMNS or agree < len(cells) * (0.9 if mark else 1.0):
        return None
    return cells


def _cells(line: str, mark: str) -> list[str]:
    if mark in (",", ";"):
        try:
            return next(csv.reader([line], delimiter=mark), [])
        except csv.Error:
            return line.split(mark)
    return split_row(line, mark)


def _render_rows(cells: Sequence[Sequence[str]]) -> Markup:
    """Return a table with the first row as names of the columns."""
    columns = max(map(len, cells))
    numbers = [_is_number_column([row[at] for row in cells[1:] if at < len(row)]) for at in range(columns)]
    head = "".join([_cell("th", name, at < columns and numbers[at]) for at, name in enumerate(cells[0])])
    body = "".join(
        [f"<tr>{''.join([_cell('td', text, numbers[at]) for at, text in enumerate(row)])}</tr>" for row in cells[1:]]
    )
    table = f'<table class="c-table"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'
    return Markup(f'<div class="c-scroll" tabindex="0">{table}</div>')


def _cell(tag: str, text: str, is_number: bool) -> str:
    shown = visible(text[:_MOST_CHARACTERS].strip())
    cut = f'<span class="c-cut">… {len(text):,} characters</span>' if len(text) > _MOST_CHARACTERS else ""
    opened = f'{tag} class="c-number"' if is_number else tag
    return f"<{opened}>{shown}{cut}</{tag}>"


def _is_number_column(values: Sequence[str]) -> bool:
    filled = [value[:40] for value in values if value.strip()]
    return bool(filled) and sum([1 for value in filled if _NUMBER.match(value)]) >= 0.8 * len(filled)
