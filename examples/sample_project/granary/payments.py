"""Matching what came in on the bank account with what is owed."""

from dataclasses import dataclass, field
from datetime import date

from granary.ids import invoice_of_reference
from granary.money import Money

DISCOUNT_DAYS = 10
DISCOUNT_PERCENT = 2


@dataclass(frozen=True)
class Payment:
    received: date
    amount: Money
    payer: str
    text: str
    reference: str = ""


@dataclass(frozen=True)
class Match:
    """How much of a payment went to an invoice, and how it was found."""

    invoice: str
    amount: Money
    how: str


@dataclass
class Result:
    matches: list[Match] = field(default_factory=list)
    left: Money = Money.zero()

    @property
    def settled(self):
        return not self.left


@dataclass
class OpenItem:
    invoice: str
    customer: str
    issued: date
    due: date
    amount: Money


def settle(payment, items, customer=None):
    """Spread a payment over open items.

    First the invoice its reference names, then one item of exactly the amount (also less cash discount), then the
    oldest items of the customer. What is left over stays on the account.
    """
    left = payment.amount
    matches = []
    named = invoice_of_reference(payment.reference or payment.text)
    for item in [item for item in items if item.invoice == named]:
        left = _take(item, left, "reference", matches)
    theirs = [item for item in items if item.amount and (customer is None or item.customer == customer)]
    if left and not matches:
        for item in theirs:
            if item.amount == left:
                left = _take(item, left, "exact amount", matches)
                break
            if _within_discount(item, payment) and item.amount - item.amount.percent(DISCOUNT_PERCENT) == left:
                matches.append(Match(item.invoice, left, "cash discount"))
                item.amount = Money.zero(left.currency)
                left = Money.zero(left.currency)
                break
    if left and customer is not None:
        for item in sorted(theirs, key=lambda item: (item.due, item.invoice)):
            if not left:
                break
            left = _take(item, left, "oldest first", matches)
    return Result(matches, left)


def _take(item, left, how, matches):
    taken = min(item.amount, left)
    if taken.cents > 0:
        item.amount = item.amount - taken
        matches.append(Match(item.invoice, taken, how))
        return left - taken
    return left


def _within_discount(item, payment):
    return (payment.received - item.issued).days <= DISCOUNT_DAYS
