"""Amounts of money, in whole cents.

This is the only module that rounds. Everything else adds, subtracts, and asks for `times` or `allocate`.
"""

import re
from dataclasses import dataclass
from decimal import ROUND_HALF_EVEN, Decimal

from granary.errors import MoneyError

SYMBOLS = {"EUR": "€", "GBP": "£", "CHF": "Fr.", "PLN": "zł"}
AMOUNT = re.compile(r"^(?P<sign>-?)(?P<whole>\d+)(?:[.,](?P<cents>\d{1,2}))?$")


@dataclass(frozen=True, order=True)
class Money:
    cents: int
    currency: str = "EUR"

    @classmethod
    def parse(cls, text, currency="EUR"):
        """Read `12`, `12.5` or `-12,50`. Separators between thousands are not accepted: see `bankfile.amount`."""
        found = AMOUNT.match(text.strip())
        if not found:
            raise MoneyError(f"not an amount: {text!r}")
        cents = int(found["whole"]) * 100 + int((found["cents"] or "0").ljust(2, "0"))
        return cls(-cents if found["sign"] else cents, currency)

    @classmethod
    def zero(cls, currency="EUR"):
        return cls(0, currency)

    def __add__(self, other):
        self._same_currency(other)
        return Money(self.cents + other.cents, self.currency)

    def __sub__(self, other):
        self._same_currency(other)
        return Money(self.cents - other.cents, self.currency)

    def __neg__(self):
        return Money(-self.cents, self.currency)

    def __bool__(self):
        return self.cents != 0

    def times(self, factor):
        """This amount multiplied by a Decimal, an int or a numeric string; half cents go to the even neighbour."""
        exact = Decimal(self.cents) * Decimal(factor)
        return Money(quantize_half_even(exact), self.currency)

    def percent(self, rate):
        """`rate` per cent of this amount."""
        return self.times(Decimal(rate) / 100)

    def allocate(self, weights):
        """Split by weights so that the parts add up to the whole; leftover cents go to the heaviest parts first."""
        total = sum(weights)
        if total <= 0:
            raise MoneyError("cannot split by weights that add up to nothing")
        shares = [int(self.cents * weight / total) for weight in weights]
        left = self.cents - sum(shares)
        heaviest = sorted(range(len(weights)), key=lambda index: (-weights[index], index))
        for index in heaviest[:left]:
            shares[index] += 1
        parts = [Money(share, self.currency) for share in shares]
        if sum(shares) != self.cents:
            raise MoneyError(f"parts do not add up to the whole: {self} became {total_of(parts, self.currency)}")
        return parts

    def __str__(self):
        sign = "-" if self.cents < 0 else ""
        whole, cents = divmod(abs(self.cents), 100)
        return f"{sign}{whole:,}.{cents:02d} {self.currency}"

    def short(self):
        """For narrow columns: `€ 1,284.60`."""
        amount = str(self).removesuffix(f" {self.currency}")
        return f"{SYMBOLS.get(self.currency, self.currency)} {amount}"

    def _same_currency(self, other):
        if self.currency != other.currency:
            raise MoneyError(f"cannot mix {self.currency} and {other.currency}")


def quantize_half_even(value):
    """A Decimal to the nearest int, halves to the even one. The one place where granary rounds money."""
    return int(Decimal(value).quantize(Decimal(1), rounding=ROUND_HALF_EVEN))


def total_of(amounts, currency="EUR"):
    """The sum of amounts, zero for none."""
    total = Money.zero(currency)
    for amount in amounts:
        total = total + amount
    return total
