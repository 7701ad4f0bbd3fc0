"""The nightly run: invoice what was shipped, import the bank statement, write reminders.

One bad order or line never stops the run; it is logged as an error and counted.
"""

from dataclasses import dataclass, field

from granary import bankfile
from granary.errors import GranaryError
from granary.ledger import entry_for_invoice, entry_for_payment
from granary.payments import settle
from granary.reminders import reminders


@dataclass
class Summary:
    invoiced: int = 0
    credited: int = 0
    paid: int = 0
    unmatched: int = 0
    rejected: int = 0
    reminded: int = 0
    errors: list[str] = field(default_factory=list)

    def line(self):
        return (
            f"invoiced={self.invoiced} credited={self.credited} paid={self.paid} unmatched={self.unmatched} "
            f"rejected={self.rejected} reminded={self.reminded} errors={len(self.errors)}"
        )


class Nightly:
    def __init__(self, storage, ledger, invoicing, catalog, customers, log):
        self.storage = storage
        self.ledger = ledger
        self.invoicing = invoicing
        self.catalog = catalog
        self.customers = customers
        self.log = log

    def run(self, orders, credits, statement, today):
        """The whole night. `credits` are (invoice, net amount, reason) that the office agreed to during the day."""
        summary = Summary()
        self.invoice(orders, today, summary)
        self.credit(credits, today, summary)
        self.payments(statement, summary)
        summary.reminded = len(reminders(self.storage.invoices(), today))
        self.log("INFO", "nightly", f"end {summary.line()}")
        return summary

    def invoice(self, orders, today, summary):
        for order in orders:
            try:
                customer = self.customers.get(order.customer)
                made = self.invoicing.invoice(order, customer, self.catalog, today)
                self._book(made)
                summary.invoiced += 1
                self.log("INFO", "invoices", f"{made.number} customer={made.customer} total={made.total} due={made.due}")
            except (GranaryError, ValueError) as error:
                self._failed(summary, "invoices", f"order={order.number} customer={order.customer}: {error}")

    def credit(self, credits, today, summary):
        for invoice, amount, reason in credits:
            try:
                customer = self.customers.get(invoice.customer)
                note = self.invoicing.credit(invoice, customer, amount, today, reason)
                self._book(note)
                summary.credited += 1
                self.log("INFO", "credits", f"{note.number} for={invoice.number} total={note.total}")
            except (GranaryError, ValueError) as error:
                self._failed(summary, "credits", f"invoice={invoice.number} amount={amount}: {error}")

    def payments(self, statement, summary):
        for error in statement.rejected:
            summary.rejected += 1
            self.log("WARN", "bankfile", str(error))
        items = self.storage.open_items()
        for payment in statement.payments:
            result = settle(payment, items)
            self.storage.add_payment(payment, result.matches)
            for match in result.matches:
                self.ledger.post(entry_for_payment(payment, match))
            summary.paid += len(result.matches)
            if result.left:
                summary.unmatched += 1
                self.log("WARN", "payments", f"{result.left} of {payment.payer} not matched: {payment.text}")

    def _book(self, document):
        self.storage.add_invoice(document)
        self.ledger.post(entry_for_invoice(document))

    def _failed(self, summary, part, message):
        summary.errors.append(message)
        self.log("ERROR", part, message)


def statement_of(path):
    return bankfile.read(path)
