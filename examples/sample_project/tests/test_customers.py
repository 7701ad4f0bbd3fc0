import os
import unittest

from granary import customers
from granary.errors import CreditLimit, UnknownCustomer
from granary.money import Money
from tests import sample


class CreditTest(unittest.TestCase):
    def test_within_the_limit(self):
        sample.customers().check_credit("C-20077", Money(30_000), Money(10_000))

    def test_above_the_limit(self):
        with self.assertRaises(CreditLimit) as caught:
            sample.customers().check_credit("C-20077", Money(30_000), Money(10_001))
        self.assertIn("has a limit of 400.00 EUR and owes 300.00 EUR", str(caught.exception))

    def test_no_limit(self):
        sample.customers().check_credit("C-20433", Money(90_000_000), Money(1))

    def test_blocked(self):
        known = sample.customers()
        known.block("C-20433")
        with self.assertRaises(CreditLimit):
            known.check_credit("C-20433", Money(0), Money(1))

    def test_unknown(self):
        with self.assertRaises(UnknownCustomer):
            sample.customers().get("C-99999")

    def test_numbers_are_checked(self):
        with self.assertRaises(ValueError):
            sample.customers().add(customers.Customer("20418", "No prefix"))


class LoadTest(unittest.TestCase):
    def test_the_real_file(self):
        path = os.path.join(os.path.dirname(__file__), "..", "data", "customers.csv")
        loaded, problems = customers.load(path)
        self.assertEqual(problems, [])
        self.assertEqual(loaded.get("C-20418").terms, "net 30")

    def test_address_lines(self):
        address = customers.Address("Mühlenweg 4", "Telgte", "48291")
        self.assertEqual(address.lines(), ["Mühlenweg 4", "48291 Telgte", "DE"])
