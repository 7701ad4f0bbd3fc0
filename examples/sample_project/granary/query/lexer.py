"""From text to tokens. Every token knows where it begins, for messages that point at the mistake."""

from dataclasses import dataclass

from granary.errors import QueryError

KEYWORDS = {"and", "or", "not", "in", "like", "is", "empty"}
SYMBOLS = ["=", "!=", "<", ">", "<=", ">=", "(", ")", ","]


@dataclass(frozen=True)
class Token:
    kind: str
    value: str
    position: int


def tokens(text):
    """All tokens of a filter, ended by one of kind `end`."""
    found, at = [], 0
    while at < len(text):
        char = text[at]
        if char.isspace():
            at += 1
        elif char == '"':
            value, end = _string(text, at)
            found.append(Token("string", value, at))
            at = end
        elif char.isdigit() or (char == "-" and text[at + 1 : at + 2].isdigit()):
            end = _while(text, at + 1, lambda char: char.isdigit() or char in ".-")
            kind = "date" if text[at:end].count("-") == 2 and char != "-" else "number"
            found.append(Token(kind, text[at:end], at))
            at = end
        elif char.isalpha() or char == "_":
            end = _while(text, at, lambda char: char.isalnum() or char in "_.")
            word = text[at:end]
            kind = "keyword" if word.lower() in KEYWORDS else "name"
            found.append(Token(kind, word.lower() if kind == "keyword" else word, at))
            at = end
        else:
            symbol = _symbol(text, at)
            found.append(Token("symbol", symbol, at))
            at += len(symbol)
    found.append(Token("end", "", len(text)))
    return found


def _symbol(text, at):
    for symbol in SYMBOLS:
        if text.startswith(symbol, at):
            return symbol
    raise QueryError(f"{text[at]!r} is not expected", at)


def _string(text, start):
    """The string that begins at `start` and the position after it. A backslash takes the next character as it is."""
    value, at = [], start + 1
    while at < len(text):
        if text[at] == "\\" and at + 1 < len(text):
            value.append(text[at + 1])
            at += 2
        elif text[at] == '"':
            return "".join(value), at + 1
        else:
            value.append(text[at])
            at += 1
    raise QueryError("a string is not closed", start)


def _while(text, at, wanted):
    while at < len(text) and wanted(text[at]):
        at += 1
    return at
