"""Customers, invoices and payments in SQLite. Queries return dicts, so that filters and reports can read them."""

import sqlite3
from datetime import date

from granary.migrations import migrate
from granary.money import Money
from granary.payments import OpenItem

INVOICE = """
SELECT invoice.number, invoice.customer, customer.name, invoice.order_number, invoice.issued, invoice.due,
       invoice.net_cents, invoice.tax_cents, invoice.currency, invoice.credits,
       (SELECT COALESCE(SUM(cents), 0) FROM payment WHERE payment.invoice = invoice.number) AS paid_cents,
       (SELECT COALESCE(SUM(note.net_cents + note.tax_cents), 0) FROM invoice AS note
        WHERE note.credits = invoice.number) AS credited_cents
FROM invoice JOIN customer ON customer.number = invoice.customer
"""


class Storage:
    def __init__(self, path=":memory:"):
        self.connection = sqlite3.connect(path)
        self.connection.row_factory = sqlite3.Row
        migrate(self.connection)

    def close(self):
        self.connection.close()

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.close()

    def add_customer(self, customer):
        with self.connection:
            self.connection.execute(
                "INSERT INTO customer VALUES (?, ?, ?, ?) ON CONFLICT (number) DO UPDATE "
                "SET name = excluded.name, grade = excluded.grade, terms = excluded.terms",
                (customer.number, customer.name, customer.grade, customer.terms),
            )

    def add_invoice(self, invoice):
        with self.connection:
            self.connection.execute(
                "INSERT INTO invoice VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    invoice.number,
                    invoice.customer,
                    invoice.order,
                    invoice.issued.isoformat(),
                    invoice.due.isoformat(),
                    invoice.net.cents,
                    invoice.tax.cents,
                    invoice.total.currency,
                    invoice.credits or None,
                ),
            )

    def add_payment(self, payment, matches):
        """Book what went to each invoice, all or nothing."""
        with self.connection:
            self.connection.executemany(
                "INSERT INTO payment (invoice, received, cents, payer, how) VALUES (?, ?, ?, ?, ?)",
                [
                    (match.invoice, payment.received.isoformat(), match.amount.cents, payment.payer, match.how)
                    for match in matches
                ],
            )

    def invoices(self, wanted=None, customer=None):
        """Invoices (not credit notes) by number; `wanted` is a compiled filter."""
        sql, values = INVOICE + " WHERE invoice.credits IS NULL", []
        if customer is not None:
            sql, values = sql + " AND invoice.customer = ?", [customer]
        rows = [_row(found) for found in self.connection.execute(sql + " ORDER BY invoice.number", values)]
        return [row for row in rows if wanted is None or wanted(row)]

    def credit_notes(self, invoice):
        sql = INVOICE + " WHERE invoice.credits = ? ORDER BY invoice.number"
        return [_row(found) for found in self.connection.execute(sql, (invoice,))]

    def payments(self, invoice):
        sql = "SELECT received, cents, payer, how FROM payment WHERE invoice = ? ORDER BY received, id"
        return [dict(found) for found in self.connection.execute(sql, (invoice,))]

    def open_items(self, customer=None):
        """What is still to be paid, for `payments.settle`."""
        return [
            OpenItem(row["number"], row["customer"], row["issued"], row["due"], row["open"])
            for row in self.invoices(customer=customer)
            if row["open"].cents > 0
        ]

    def owing(self, customer):
        return sum((item.amount.cents for item in self.open_items(customer)), 0)


def _row(found):
    currency = found["currency"]
    total = Money(found["net_cents"] + found["tax_cents"], currency)
    paid = Money(found["paid_cents"], currency)
    credited = Money(-found["credited_cents"], currency)
    left = total - paid - credited
    return {
        "number": found["number"],
        "customer": found["customer"],
        "name": found["name"],
        "order": found["order_number"],
        "issued": date.fromisoformat(found["issued"]),
        "due": date.fromisoformat(found["due"]),
        "net": Money(found["net_cents"], currency),
        "total": total,
        "paid": paid,
        "credited": credited,
        "open": left,
        "status": "open" if left.cents > 0 else "settled",
    }
