"""From a tree to a function that answers True or False for a row.

A field that a row does not have is empty: it equals nothing and is neither more nor less than anything.
"""

import operator
import re
from datetime import date
from decimal import Decimal

from granary.money import Money
from granary.query.parser import All, AnyOf, Compare, Not

OPERATORS = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    ">": operator.gt,
    "<=": operator.le,
    ">=": operator.ge,
}


def matcher(tree):
    if isinstance(tree, All):
        parts = [matcher(part) for part in tree.parts]
        return lambda row: all(part(row) for part in parts)
    if isinstance(tree, AnyOf):
        parts = [matcher(part) for part in tree.parts]
        return lambda row: any(part(row) for part in parts)
    if isinstance(tree, Not):
        inner = matcher(tree.inner)
        return lambda row: not inner(row)
    return _comparison(tree)


def _comparison(tree: Compare):
    if tree.operator == "empty":
        return lambda row: _field(row, tree.name) in (None, "")
    if tree.operator == "in":
        return lambda row: any(_compare(operator.eq, _field(row, tree.name), value) for value in tree.value)
    if tree.operator == "like":
        pattern = _like(tree.value)
        return lambda row: pattern.fullmatch(str(_field(row, tree.name) or "")) is not None
    compare = OPERATORS[tree.operator]
    return lambda row: _compare(compare, _field(row, tree.name), tree.value)


def _field(row, name):
    """`address.town` looks into nested rows."""
    for step in name.split("."):
        row = row.get(step) if isinstance(row, dict) else getattr(row, step, None)
        if row is None:
            return None
    return row


def _compare(compare, mine, asked):
    if mine is None:
        return False
    if isinstance(mine, Money):
        mine = Decimal(mine.cents) / 100
    if isinstance(asked, Decimal) and isinstance(mine, int):
        mine = Decimal(mine)
    if isinstance(asked, date) and isinstance(mine, str):
        mine = date.fromisoformat(mine)
    try:
        return compare(mine, asked)
    except TypeError:
        return False


def _like(text):
    """`%` stands for any run of characters, `_` for one; upper and lower case are the same."""
    parts = [{"%": ".*", "_": "."}.get(char, re.escape(char)) for char in text]
    return re.compile("".join(parts), re.IGNORECASE | re.DOTALL)
