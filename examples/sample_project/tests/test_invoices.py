import unittest
from datetime import date

from granary.errors import GranaryError
from granary.invoices import open_amount
from granary.money import Money
from tests import sample
from tests.sample import AUSTRIAN, BAKERY, RYE_1150, SPELT_630, TODAY, WHEAT_550


class InvoiceTest(unittest.TestCase):
    def test_from_an_order(self):
        order = sample.shipped()
        made = sample.invoicing().invoice(order, BAKERY, sample.catalog(), TODAY)
        self.assertEqual((made.number, made.order, order.state), ("INV-2025-00317", "SO-88231", "invoiced"))
        self.assertEqual(made.due, date(2025, 4, 14))
        self.assertEqual(made.total, made.net + made.tax)

    def test_only_shipped_orders(self):
        order = sample.shipped()
        order.state = "confirmed"
        with self.assertRaises(GranaryError):
            sample.invoicing().invoice(order, BAKERY, sample.catalog(), TODAY)

    def test_freight_is_spread_by_value(self):
        order = sample.shipped()
        plain = order.net()
        made = sample.invoicing().invoice(order, BAKERY, sample.catalog(), TODAY, freight=Money(4_999))
        self.assertEqual(made.net, plain + Money(4_999))

    def test_no_tax_across_the_border(self):
        order = sample.shipped(customer=AUSTRIAN)
        made = sample.invoicing().invoice(order, AUSTRIAN, sample.catalog(), TODAY)
        self.assertEqual((made.tax, made.taxes[0].note), (Money(0), "VAT due by the recipient"))


class CreditTest(unittest.TestCase):
    def setUp(self):
        self.office = sample.invoicing()
        order = sample.shipped(lines=((WHEAT_550, 20), (RYE_1150, 12), (SPELT_630, 7)))
        self.invoice = self.office.invoice(order, BAKERY, sample.catalog(), TODAY)

    def test_credit_note(self):
        note = self.office.credit(self.invoice, BAKERY, Money(1_000), TODAY, "Damaged sack")
        self.assertEqual((note.number, note.net, note.credits), ("CN-2025-00041", Money(-1_000), "INV-2025-00317"))

    def test_not_more_than_the_invoice(self):
        with self.assertRaises(GranaryError):
            self.office.credit(self.invoice, BAKERY, self.invoice.net + Money(1), TODAY)

    def test_open_amount(self):
        self.assertEqual(
            open_amount(self.invoice, [Money(10_000)], [Money(500)]), self.invoice.total - Money(10_500)
        )
