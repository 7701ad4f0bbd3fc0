"""Double-entry bookkeeping: accounts, entries, balances. Debits are positive, credits negative."""

from collections import defaultdict
from dataclasses import dataclass
from datetime import date

from granary.errors import Unbalanced
from granary.money import Money, total_of

ACCOUNTS = {
    "1200": "Bank",
    "1400": "Receivables",
    "1776": "VAT payable",
    "3400": "Goods in",
    "8300": "Sales of food",
    "8310": "Sales of feed",
    "8400": "Services",
    "8730": "Cash discount granted",
}
SALES = {"food": "8300", "feed": "8310", "service": "8400", "packaging": "8400"}


@dataclass(frozen=True)
class Posting:
    account: str
    amount: Money


@dataclass(frozen=True)
class Entry:
    day: date
    text: str
    postings: tuple[Posting, ...]
    document: str = ""

    def check(self):
        total = total_of(posting.amount for posting in self.postings)
        if total:
            raise Unbalanced(f"{self.document or self.text}: off by {total}")
        unknown = [posting.account for posting in self.postings if posting.account not in ACCOUNTS]
        if unknown:
            raise Unbalanced(f"{self.document or self.text}: unknown account {unknown[0]}")


class Ledger:
    def __init__(self):
        self.entries = []

    def post(self, entry):
        entry.check()
        self.entries.append(entry)
        return entry

    def balance(self, account, until=None):
        return total_of(
            posting.amount
            for entry in self.entries
            if until is None or entry.day <= until
            for posting in entry.postings
            if posting.account == account
        )

    def trial_balance(self, until=None):
        """Every account that was touched, with its balance. The balances add up to zero."""
        touched = sorted({posting.account for entry in self.entries for posting in entry.postings})
        return [(account, ACCOUNTS[account], self.balance(account, until)) for account in touched]

    def of_document(self, number):
        return [entry for entry in self.entries if entry.document == number]


def entry_for_invoice(invoice):
    """Receivables against sales and tax. The same for a credit note, whose amounts are negative."""
    sales = defaultdict(lambda: Money.zero(invoice.total.currency))
    for line in invoice.lines:
        account = SALES[line.tax_class]
        sales[account] = sales[account] + line.net
    postings = [Posting("1400", invoice.total)]
    postings += [Posting(account, -net) for account, net in sorted(sales.items())]
    if invoice.tax:
        postings.append(Posting("1776", -invoice.tax))
    return Entry(invoice.issued, f"Invoice {invoice.customer}", tuple(postings), invoice.number)


def entry_for_payment(payment, match, discount=None):
    """Bank (and discount granted) against receivables."""
    postings = [Posting("1200", match.amount)]
    settled = match.amount
    if discount:
        postings.append(Posting("8730", discount))
        settled = settled + discount
    postings.append(Posting("1400", -settled))
    return Entry(payment.received, f"Payment {payment.payer}", tuple(postings), match.invoice)
