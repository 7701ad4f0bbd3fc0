import unittest
from datetime import date

from granary.money import Money
from granary.payments import Match, Payment
from granary.query import compile_filter
from granary.storage import Storage
from tests import sample
from tests.sample import BAKERY, RYE_1150, SHOP, TODAY, WHEAT_550


class StorageTest(unittest.TestCase):
    def setUp(self):
        self.storage = Storage()
        self.addCleanup(self.storage.close)
        self.office = sample.invoicing()
        for customer in (BAKERY, SHOP):
            self.storage.add_customer(customer)
        self.invoice = self.add("SO-88231", BAKERY, (WHEAT_550, 20), (RYE_1150, 12))

    def add(self, number, customer, *lines):
        made = self.office.invoice(sample.shipped(number, customer, lines), customer, sample.catalog(), TODAY)
        self.storage.add_invoice(made)
        return made

    def test_a_row_says_what_is_open(self):
        (row,) = self.storage.invoices()
        self.assertEqual((row["number"], row["open"], row["status"]), ("INV-2025-00317", self.invoice.total, "open"))
        self.assertEqual(row["name"], "Backhaus Lindner GmbH")

    def test_payments_count(self):
        payment = Payment(date(2025, 4, 1), self.invoice.total, "Backhaus Lindner GmbH", "")
        self.storage.add_payment(payment, [Match(self.invoice.number, self.invoice.total, "reference")])
        (row,) = self.storage.invoices()
        self.assertEqual((row["open"], row["status"]), (Money(0), "settled"))
        self.assertEqual(self.storage.open_items(), [])

    def test_credit_notes_count(self):
        note = self.office.credit(self.invoice, BAKERY, Money(1_550), TODAY, "Torn sack")
        self.storage.add_invoice(note)
        (row,) = self.storage.invoices()
        self.assertEqual(row["open"], self.invoice.total + note.total)
        self.assertEqual([each["number"] for each in self.storage.credit_notes(self.invoice.number)], ["CN-2025-00041"])

    def test_filters(self):
        self.add("SO-88232", SHOP, (WHEAT_550, 1))
        rows = self.storage.invoices(compile_filter('customer = "C-20077"'))
        self.assertEqual([row["order"] for row in rows], ["SO-88232"])

    def test_owing(self):
        self.assertEqual(self.storage.owing("C-20418"), self.invoice.total.cents)
        self.assertEqual(self.storage.owing("C-20077"), 0)

    def test_customers_are_brought_up_to_date(self):
        self.storage.add_customer(sample.customers().get("C-20418"))
        self.assertEqual(len(self.storage.invoices()), 1)
