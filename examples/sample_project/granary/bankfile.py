"""Bank statements as our bank delivers them: one booking a line, fields separated by bars.

    14.03.2025|1.284,60|EUR|C|Backhaus Lindner GmbH|RF18INV202500317|Rechnung INV-2025-00317

The fifth field is the payer, `C` is money that came in, `D` money that went out. Lines that begin with `#` are comments.
"""

import re
from dataclasses import dataclass
from datetime import date

from granary.errors import MoneyError, RowError
from granary.money import Money
from granary.payments import Payment

FIELDS = 7
GERMAN = re.compile(r"^(?P<whole>\d{1,3}),(?P<cents>\d{2})$")


@dataclass(frozen=True)
class Statement:
    payments: list[Payment]
    outgoing: list[Payment]
    rejected: list[RowError]

    @property
    def lines(self):
        return len(self.payments) + len(self.outgoing) + len(self.rejected)


def read(path):
    """Read a statement. A line that makes no sense is rejected with its number; the others are used."""
    with open(path, encoding="utf-8") as file:
        return parse(file.read().splitlines())


def parse(lines):
    incoming, outgoing, rejected = [], [], []
    for number, line in enumerate(lines, start=1):
        if not line.strip() or line.startswith("#"):
            continue
        try:
            sign, payment = booking(line)
        except (ValueError, MoneyError) as error:
            rejected.append(RowError(number, str(error)))
            continue
        (incoming if sign == "C" else outgoing).append(payment)
    return Statement(incoming, outgoing, rejected)


def booking(line):
    """One line: its sign and the payment."""
    fields = [field.strip() for field in line.split("|")]
    if len(fields) != FIELDS:
        raise ValueError(f"{FIELDS} fields expected, {len(fields)} found")
    booked, value, currency, sign, payer, reference, text = fields
    if sign not in ("C", "D"):
        raise ValueError(f"sign {sign!r} is neither C nor D")
    return sign, Payment(german_date(booked), amount(value, currency), payer, text, reference)


def german_date(text):
    day, month, year = text.split(".")
    return date(int(year), int(month), int(day))


def amount(text, currency="EUR"):
    """An amount in German notation: a comma before the cents."""
    found = GERMAN.match(text)
    if not found:
        raise MoneyError(f"not an amount in German notation: {text!r}")
    return Money(int(found["whole"]) * 100 + int(found["cents"]), currency)
