import os
import tempfile
import unittest

from granary import cli
from granary.storage import Storage
from tests import sample
from tests.sample import BAKERY, SHOP, TODAY, WHEAT_550


class CliTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.database = os.path.join(folder.name, "granary.db")
        office = sample.invoicing()
        with Storage(self.database) as storage:
            for number, customer in (("SO-88231", BAKERY), ("SO-88232", SHOP)):
                storage.add_customer(customer)
                order = sample.shipped(number, customer, ((WHEAT_550, 3),))
                storage.add_invoice(office.invoice(order, customer, sample.catalog(), TODAY))

    def run_cli(self, *arguments):
        lines = []
        code = cli.main(["--database", self.database, *arguments], out=lines.append)
        return code, lines

    def test_invoices(self):
        code, lines = self.run_cli("invoices", 'customer = "C-20077"')
        self.assertEqual((code, lines), (0, ["INV-2025-00318  C-20077  2025-03-14  49.76 EUR  open"]))

    def test_a_wrong_filter(self):
        code, lines = self.run_cli("invoices", "customer ~ 3")
        self.assertEqual((code, lines), (1, ["error: '~' is not expected at position 9"]))

    def test_ageing(self):
        code, lines = self.run_cli("ageing", "--today", "2025-03-14")
        self.assertEqual(code, 0)
        self.assertIn("C-20418", lines[0])

    def test_check(self):
        path = os.path.join(os.path.dirname(__file__), "..", "data", "customers.csv")
        code, lines = self.run_cli("check", "customers", path)
        self.assertEqual((code, lines[-1]), (0, "48 good, 0 bad"))
