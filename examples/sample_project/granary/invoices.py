"""Invoices and credit notes. Once numbered they never change; a mistake is mended by a credit note."""

from dataclasses import dataclass
from datetime import date

from granary.dates import due_date
from granary.errors import GranaryError
from granary.ids import creditor_reference
from granary.money import Money, total_of
from granary.tax import TaxLine, tax_lines


@dataclass(frozen=True)
class InvoiceLine:
    text: str
    net: Money
    tax_class: str
    sku: str = ""
    sacks: int = 0


@dataclass(frozen=True)
class Invoice:
    number: str
    customer: str
    order: str
    issued: date
    due: date
    lines: tuple[InvoiceLine, ...]
    taxes: tuple[TaxLine, ...]
    credits: str = ""

    @property
    def net(self):
        return total_of(line.net for line in self.lines)

    @property
    def tax(self):
        return total_of(line.tax for line in self.taxes)

    @property
    def total(self):
        return self.net + self.tax

    @property
    def reference(self):
        return creditor_reference(self.number)


class Invoicing:
    """Makes invoices from shipped orders. Holds the two number sequences."""

    def __init__(self, numbers, credit_numbers):
        self.numbers = numbers
        self.credit_numbers = credit_numbers

    def invoice(self, order, customer, catalog, today, freight=None):
        """The invoice for a shipped order. Freight is spread over the lines by their value, so each carries its tax."""
        if order.state != "shipped":
            raise GranaryError(f"{order.number} is {order.state}, only shipped orders are invoiced")
        nets = [line.total for line in order.lines]
        if freight:
            shares = freight.allocate([net.cents for net in nets])
            nets = [net + share for net, share in zip(nets, shares)]
        lines = tuple(
            InvoiceLine(catalog.get(line.sku).name, net, line.tax_class, line.sku, line.sacks)
            for line, net in zip(order.lines, nets)
        )
        taxes = tuple(tax_lines(customer, [(line.tax_class, line.net) for line in lines]))
        due = due_date(today, customer.terms)
        made = Invoice(self.numbers.next(today.year), customer.number, order.number, today, due, lines, taxes)
        order.move("invoiced", today)
        return made

    def credit(self, invoice, customer, amount, today, text="Credit"):
        """A credit note over a net amount, spread over the lines of the invoice it mends."""
        if amount.cents <= 0 or amount > invoice.net:
            raise GranaryError(f"{invoice.number}: {amount} cannot be credited on {invoice.net}")
        shares = (-amount).allocate([line.net.cents for line in invoice.lines])
        lines = tuple(
            InvoiceLine(f"{text}: {line.text}", share, line.tax_class, line.sku)
            for line, share in zip(invoice.lines, shares)
            if share
        )
        taxes = tuple(tax_lines(customer, [(line.tax_class, line.net) for line in lines]))
        number = self.credit_numbers.next(today.year)
        return Invoice(number, invoice.customer, invoice.order, today, today, lines, taxes, credits=invoice.number)


def open_amount(invoice, paid, credited):
    """What is still to be paid. `paid` and `credited` are lists of positive amounts."""
    return invoice.total - total_of(paid) - total_of(credited)
