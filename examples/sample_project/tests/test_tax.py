import unittest
from decimal import Decimal

from granary import tax
from granary.money import Money
from tests.sample import AUSTRIAN, BAKERY, SWISS


class TreatmentTest(unittest.TestCase):
    def test_by_country_and_vat_id(self):
        self.assertEqual(tax.treatment(BAKERY), "domestic")
        self.assertEqual(tax.treatment(AUSTRIAN), "reverse charge")
        self.assertEqual(tax.treatment(SWISS), "export")

    def test_rates(self):
        self.assertEqual(tax.rate_for(BAKERY, "food"), Decimal(7))
        self.assertEqual(tax.rate_for(AUSTRIAN, "food"), Decimal(0))


class TaxLinesTest(unittest.TestCase):
    def test_one_line_for_each_rate(self):
        lines = tax.tax_lines(BAKERY, [("food", Money(10_000)), ("service", Money(2_000)), ("feed", Money(5_000))])
        self.assertEqual([(line.rate, line.tax) for line in lines], [(Decimal(19), Money(380)), (Decimal(7), Money(1050))])

    def test_reverse_charge_says_so(self):
        (line,) = tax.tax_lines(AUSTRIAN, [("food", Money(10_000))])
        self.assertEqual((line.tax, line.note), (Money(0), "VAT due by the recipient"))


class VatIdTest(unittest.TestCase):
    def test_rough_check(self):
        self.assertTrue(tax.looks_like_vat_id("DE 812 345 670"))
        self.assertFalse(tax.looks_like_vat_id("812345670"))
