"""From tokens to a tree.

    filter     = both { "or" both }
    both       = negated { "and" negated }
    negated    = [ "not" ] ( "(" filter ")" | comparison )
    comparison = name ( symbol value | "in" "(" value { "," value } ")" | "like" string | "is" [ "not" ] "empty" )
"""

from dataclasses import dataclass
from datetime import date
from decimal import Decimal, InvalidOperation

from granary.errors import QueryError
from granary.query.lexer import tokens

COMPARISONS = {"=", "!=", "<", ">", "<=", ">="}


@dataclass(frozen=True)
class Compare:
    name: str
    operator: str
    value: object


@dataclass(frozen=True)
class Not:
    inner: object


@dataclass(frozen=True)
class All:
    parts: tuple


@dataclass(frozen=True)
class AnyOf:
    parts: tuple


def parse(text):
    reader = _Reader(tokens(text))
    tree = reader.filter()
    reader.expect("end")
    return tree


class _Reader:
    def __init__(self, found):
        self.found = found
        self.at = 0

    @property
    def token(self):
        return self.found[self.at]

    def take(self, kind, *values):
        """The next token if it is of this kind (and one of these values), else None."""
        token = self.token
        if token.kind == kind and (not values or token.value in values):
            self.at += 1
            return token
        return None

    def expect(self, kind, *values):
        token = self.take(kind, *values)
        if token is None:
            wanted = " or ".join(repr(value) for value in values) or f"a {kind}"
            raise QueryError(f"{wanted} expected, found {self.token.value!r}", self.token.position)
        return token

    def filter(self):
        parts = [self.both()]
        while self.take("keyword", "or"):
            parts.append(self.both())
        return parts[0] if len(parts) == 1 else AnyOf(tuple(parts))

    def both(self):
        parts = [self.negated()]
        while self.take("keyword", "and"):
            parts.append(self.negated())
        return parts[0] if len(parts) == 1 else All(tuple(parts))

    def negated(self):
        if self.take("keyword", "not"):
            return Not(self.negated())
        if self.take("symbol", "("):
            inner = self.filter()
            self.expect("symbol", ")")
            return inner
        return self.comparison()

    def comparison(self):
        name = self.expect("name").value
        if symbol := self.take("symbol", *COMPARISONS):
            return Compare(name, symbol.value, self.value())
        if self.take("keyword", "in"):
            self.expect("symbol", "(")
            values = [self.value()]
            while self.take("symbol", ","):
                values.append(self.value())
            self.expect("symbol", ")")
            return Compare(name, "in", tuple(values))
        if self.take("keyword", "like"):
            return Compare(name, "like", self.expect("string").value)
        self.expect("keyword", "is")
        negative = self.take("keyword", "not")
        self.expect("keyword", "empty")
        empty = Compare(name, "empty", None)
        return Not(empty) if negative else empty

    def value(self):
        token = self.token
        self.at += 1
        try:
            if token.kind == "string":
                return token.value
            if token.kind == "number":
                return Decimal(token.value)
            if token.kind == "date":
                return date.fromisoformat(token.value)
        except (InvalidOperation, ValueError):
            raise QueryError(f"{token.value!r} is not a {token.kind}", token.position) from None
        raise QueryError(f"a value expected, found {token.value!r}", token.position)
