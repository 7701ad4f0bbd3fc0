import unittest

from granary import bankfile
from granary.ledger import Ledger
from granary.money import Money
from granary.nightly import Nightly
from granary.storage import Storage
from tests import sample
from tests.sample import AUSTRIAN, BAKERY, RYE_1150, SPELT_630, TODAY, WHEAT_550


class NightlyTest(unittest.TestCase):
    def setUp(self):
        self.lines = []
        self.storage = Storage()
        self.addCleanup(self.storage.close)
        for customer in sample.customers():
            self.storage.add_customer(customer)
        self.ledger = Ledger()
        self.office = sample.invoicing()
        self.nightly = Nightly(
            self.storage, self.ledger, self.office, sample.catalog(), sample.customers(), lambda *line: self.lines.append(line)
        )

    def run_night(self, orders=(), credits=(), bank=()):
        return self.nightly.run(list(orders), list(credits), bankfile.parse(list(bank)), TODAY)

    def test_invoices_are_booked(self):
        summary = self.run_night([sample.shipped("SO-88231"), sample.shipped("SO-88232", AUSTRIAN)])
        self.assertEqual((summary.invoiced, summary.errors), (2, []))
        self.assertEqual(len(self.ledger.entries), 2)

    def test_a_bad_order_does_not_stop_the_others(self):
        bad = sample.shipped("SO-88230")
        bad.customer = "C-11111"
        summary = self.run_night([bad, sample.shipped("SO-88231")])
        self.assertEqual(summary.invoiced, 1)
        self.assertEqual(summary.errors, ["order=SO-88230 customer=C-11111: no customer 'C-11111'"])

    def test_credits_of_the_day(self):
        invoice = self.office.invoice(sample.shipped(lines=((WHEAT_550, 20), (RYE_1150, 12), (SPELT_630, 7))), BAKERY, sample.catalog(), TODAY)
        self.storage.add_invoice(invoice)
        summary = self.run_night(credits=[(invoice, Money(1_000), "Damaged sack")])
        self.assertEqual((summary.credited, summary.errors), (1, []))

    def test_a_payment_settles_its_invoice(self):
        self.run_night([sample.shipped("SO-88231")])
        (item,) = self.storage.open_items()
        whole, cents = divmod(item.amount.cents, 100)
        summary = self.run_night(bank=[f"15.03.2025|{whole},{cents:02d}|EUR|C|Backhaus Lindner GmbH||danke"])
        self.assertEqual((summary.paid, summary.unmatched, self.storage.open_items()), (1, 0, []))

    def test_rejected_lines_are_counted(self):
        summary = self.run_night(bank=["nonsense"])
        self.assertEqual(summary.line(), "invoiced=0 credited=0 paid=0 unmatched=0 rejected=1 reminded=0 errors=0")
