"""Pasted text: the output of programs, logs and code within what a user wrote.

People paste a terminal's output above or below their question. It reports things; only their own words ask, decide
and bind. A text counts as pasted where several lines in a row look as only programs write them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from .lexicon import words

__all__ = ["is_document", "is_in_tags", "is_notice", "split_pasted"]

_PROMPT = re.compile(r"\s*(?:[$❯➜▶]\s+\S|>>>\s|PS [A-Z]:\S*>|[\w.-]+@[\w.-]+[:~\s]\S*\s?[$%#]\s|bash-[\d.]*[$#])")
"""The prompt of a shell. It counts twice, because output follows."""
_BEGINS = re.compile(
    r"""\s*(?:
        \[?\d{4}-\d\d-\d\d[T\s]\d\d:\d\d | \[?\d\d:\d\d:\d\d\b | \[[\w:./+-]+\]\s?[$\[\w]   # a time, or [a-tag]
      | \[?(?:TRACE|DEBUG|INFO|WARN|WARNING|ERROR|FATAL)\b[\]:\s]
      | exit\s(?:status|code)\s\d | (?:FAIL|PASS|ok)\s*$ | (?:ok|FAIL|PASS|\?)\s+[\w.-]+/\S+ | E\s{3,}\S     # tests
      | ===\s | ---\s(?:PASS|FAIL|SKIP|[ab]/)
      | diff\s--git\s | @@\s-\d | index\s[0-9a-f]{7,} | [+-]{3}\s[ab/] | [-dl][rwx-]{9}[.@+]?\s
      | at\s(?:async\s)?\S+.*[(:]\S*\d | File\s".*",\sline\s\d | Traceback\s\( | Caused\sby:      # traces
      | [\w./\\-]+\.\w{1,5}(?::\d+){1,2}[:,\s] | [\w./\\-]+\.\w{1,5}\(\d+,\d+\): | \d+\s\|\s | goroutine\s\d
      | (?:remote|fatal|error|warning|hint|npm\s(?:ERR!?|WARN|error)|bash|zsh|sh|make(?:\[\d+\])?):\s
      | [a-z][\w-]{0,11}:\s(?:can(?:'t|not)\s\w+\s['"/]|[^:]+:\s(?:No\ssuch\sfile|[Pp]ermission\sdenied|.*not\sfound$))
      | \((?:Open\sfile|Current\sdirectory):\s                                                  # the state of a shell
      | [A-Z]\w*(?:Error|Exception)(?::\s|$) | error\s?TS\d+ | panic:\s
      | </?[a-zA-Z][\w:.-]*(?:\s[^<>]*)?>.*</?[a-zA-Z][\w:.-]*>\s*$                            # markup
      | Node\.js\sv\d+\.\d | [\u2800-\u28ff]\s | ~?/\S*\s\([\w./-]+\)\s*$ | \S+\son\s.*\stook\s\d+m?s?\s*$   # shells
      | --[a-z][\w-]+(?:[\s=]|$) | "[\w.$-]+"\s*:\s*\S | [{}\[\]()]+[,;]?\s*$ | [│├└─╭╰┃━╞═┌┐┘] | [-=+*_]{6,}
    )""",
    re.VERBOSE,
)
"""The beginnings of lines that programs print or read."""
_WORDS_OF_PROGRAMS = words("""
    PS TRACE DEBUG INFO WARN WARNING ERROR FATAL exit FAIL PASS ok E diff index at File Traceback Caused goroutine npm
    error
""")
"""The words of letters alone with which these lines begin."""
_HOLDS = re.compile(r"\d\s?[KMGT]i?B\b|\s\d{1,3}%(?:\s|$|[|(])|^\s{2,}\S+(?:\s[\w-]+)?\s{2,}\S")
"""The progress of a transfer, or the columns of a table."""
_CODE = ("{", "}", ";", "\\", "=>", "),", "],", '",', "',", "},")
"""The end of a line of code, of JSON or of a command that goes on in the next line."""
_OWN = re.compile(
    r"[?？]\s*\Z|\b(?:I|i|we|you|my|our|me|us|please|pls|can|could|should|let['’]?s|don['’]?t|want|need|why|how"
    r"|ich|wir|du|bitte|je|nous|vous|tu|yo|eu|io|noi|я|мы|ты|вы)\b"
    r"|\A\W*[A-ZÀ-ÞА-Я]?[a-zß-ÿа-я'’-]+(?:[ ,:]+[\w'’-]+){3,}[.!]\s*\Z|[。！]\s*\Z"
)
"""A line in a person's words: a question, a pronoun, or a whole sentence of plain words."""
_TAG = re.compile(r"\s*</?[a-zA-Z][\w:.-]*(?:\s[^<>]*)?/?>\s*\Z")
"""A line with one tag. Lines between two of them may be a person's words."""
_ITEM = re.compile(r"\s*(?:[-*•]|\d{1,2}[.)])\s+\S")
"""An item of a list."""
_FORMATTED = re.compile(r"\s*(?:#{1,6}\s|\*\*|```|~~~|<)")
"""A title, a line in bold print, a fence of code or a tag: the form of a written text."""
_OPENING = re.compile(r"(?:\s|#{1,6} [^\n]*\n)*<([A-Za-z][\w-]*)(?:\s[^<>]*)?>")
"""The tag that opens a block, perhaps below titles."""
_NOTICE = re.compile(
    r"(?:[a-z]+[-_])+(?:notification|context|stdout|stderr|output|results?|aborted|caveat|status|details)\Z"
)
"""The name of a tag that a program writes."""
_FILE_BELOW = re.compile(r"\n[^\n<>]{1,60}: \S*[/\\]\S+\s*\Z")
"""The line with which such a text may end: `Full transcript available at: /tmp/a.output`."""
_BETWEEN, _BELOW_PROMPT = 4, 12
"""Lines between two that programs write, at most, that count as output as well, and the same below a prompt."""
_LOOKED_AT = 400
"""Characters of a line that are looked at."""
_LEAST_LINES = 3
"""Lines in a row that make a pasted text, and formatted lines of a document."""
_FORMATTED_SHARE = 4
"""One line of a document in so many, at least, is formatted."""


def split_pasted(text: str) -> tuple[str, str]:
    """Return a text without what was pasted, and what was pasted; "" for none of it."""
    lines = text.splitlines()
    if 1 < len(lines) < _LEAST_LINES and all(map(_worth, lines)):
        return "", text
    pasted = _pasted_lines(lines) if len(lines) >= _LEAST_LINES else set[int]()
    pasted |= _noticed_lines(lines)
    if not pasted and not any(map(_is_markup, lines)):
        return text, ""
    own = [line for place, line in enumerate(lines) if place not in pasted and not _is_markup(line)]
    return "\n".join(own), "\n".join([lines[place] for place in sorted(pasted)])


def is_notice(text: str) -> bool:
    """Return whether a client wrote this text in the user's name, such as `<task-notification>...`."""
    tags = _tags_of(_FILE_BELOW.sub("", text))
    return bool(tags) and all(map(_NOTICE.match, tags))


def is_document(text: str) -> bool:
    """Return whether a text has the form of a document, such as a report or a review: titles, bold print and lists."""
    lines = [line for line in text.splitlines() if line.strip()]
    formatted = sum(bool(_FORMATTED.match(line) or _ITEM.match(line)) for line in lines)
    return formatted >= _LEAST_LINES and formatted * _FORMATTED_SHARE >= len(lines)


def is_in_tags(text: str) -> bool:
    """Return whether a text has nothing outside of tags but titles: a program composed it."""
    return bool(_tags_of(text))


def _tags_of(text: str) -> list[str]:
    """Return the names of the outer tags of a text; [] if anything but titles stands outside of them.

    A block without an end goes on to the end of the text, which was cut.
    """
    names: list[str] = []
    place, text = 0, text.rstrip()
    while place < len(text):
        opening = _OPENING.match(text, place)
        if opening is None:
            return []
        name = opening[1]
        closing = text.find(f"</{name}>", opening.end())
        was_cut = closing < 0 and ("-" in name or "_" in name)  # No person writes such a tag without its end.
        if closing < 0 and not was_cut:
            return []
        names.append(name)
        place = len(text) if was_cut else closing + len(f"</{name}>")
    return names


def _pasted_lines(lines: Sequence[str]) -> set[int]:
    """Return the places of pasted lines."""
    found: set[int] = set()
    run: list[int] = []
    between: list[int] = []
    gap = machine = most = 0
    for place, line in enumerate((*lines, None)):
        if line is not None and (worth := _worth(line)):
            run += (*between, place)
            between, gap, machine = [], 0, machine + worth
            most = _BELOW_PROMPT if worth > 1 else max(most, _BETWEEN)
        elif line is not None and run and gap < most and not _is_own(line):
            between.append(place)
            gap += bool(line.strip())
        else:
            if machine >= _LEAST_LINES:
                found.update(run)
            run, between, gap, machine, most = [], [], 0, 0, 0
    return found


def _noticed_lines(lines: Sequence[str]) -> set[int]:
    """Return the places of lines in blocks that a client adds to what a user wrote: `<environment_details>`."""
    found: set[int] = set()
    end = ""
    for place, line in enumerate(lines):
        if end:
            found.add(place)
            end = "" if end in line else end
        elif line[:1] == "<" and (opening := _OPENING.match(line)) and _NOTICE.match(opening[1]):
            end = f"</{opening[1]}>"
            found.add(place)
            end = "" if end in line else end
    return found


def _is_markup(line: str) -> bool:
    return len(line) <= _LOOKED_AT and line.lstrip()[:1] == "<" and bool(_TAG.match(line))


def _worth(line: str) -> int:
    """Return how much a line speaks for pasted text: 2 for a command, 1 for another line of a program, else 0."""
    begin = line[:_LOOKED_AT]
    is_plain = _begins_plainly(begin)
    if not is_plain and _PROMPT.match(begin):
        return 2
    is_of_program = (
        (not is_plain and _BEGINS.match(begin))
        or line.rstrip().endswith(_CODE)
        or ("</" in line and begin.lstrip().startswith("<"))
        or (("B" in begin or "%" in begin or begin[:2].isspace()) and _HOLDS.search(begin))
    )
    return 1 if is_of_program and not _ITEM.match(begin) else 0


def _begins_plainly(line: str) -> bool:
    """Return whether a line begins with a word that begins no line of `_PROMPT` and `_BEGINS`."""
    word = next(iter(line.split(None, 1)), "")
    if not word.isalpha() or word in _WORDS_OF_PROGRAMS or word.endswith(("Error", "Exception")):
        return False
    return len(word) != 10 or word[0] not in "dl"  # Else it may be `drwxrwxrwx`.


def _is_own(line: str) -> bool:
    line = line[:_LOOKED_AT]
    return bool(_OWN.search(line) or _ITEM.match(line) or _FORMATTED.match(line)) and bool(line.strip())
