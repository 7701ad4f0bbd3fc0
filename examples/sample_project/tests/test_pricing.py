import unittest
from decimal import Decimal

from granary.money import Money
from granary.pricing import Break, PriceList
from tests.sample import AUSTRIAN, BAKERY, SHOP, SPELT_630, WHEAT_550


class QuoteTest(unittest.TestCase):
    def test_list_price(self):
        quote = PriceList().quote(WHEAT_550, SHOP, 3)
        self.assertEqual((quote.unit, quote.total), (Money(1550), Money(4650)))
        self.assertEqual(quote.because, ("list price 15.50 EUR",))

    def test_grade(self):
        self.assertEqual(PriceList().quote(WHEAT_550, BAKERY, 3).unit, Money(1504))

    def test_grade_and_quantity_are_both_of_the_list_price(self):
        quote = PriceList().quote(WHEAT_550, AUSTRIAN, 150)
        self.assertEqual(quote.unit, Money(1550) - Money(108) - Money(124))
        self.assertEqual(quote.because, ("list price 15.50 EUR", "mill -7 %", "150 sacks -8 %"))

    def test_agreed_price_replaces_all(self):
        prices = PriceList()
        prices.agree(BAKERY.number, SPELT_630.sku, Money(1350))
        quote = prices.quote(SPELT_630, BAKERY, 500)
        self.assertEqual((quote.unit, quote.because), (Money(1350), ("agreed price 13.50 EUR",)))


class BreakTest(unittest.TestCase):
    def test_between_two_breaks(self):
        self.assertEqual(PriceList().break_percent(WHEAT_550, 25), Decimal(2))

    def test_below_the_first(self):
        self.assertEqual(PriceList().break_percent(WHEAT_550, 3), Decimal(0))

    def test_a_group_has_its_own(self):
        prices = PriceList(group_breaks={"spelt": (Break(5, Decimal(4)),)})
        self.assertEqual(prices.break_percent(SPELT_630, 8), Decimal(4))
        self.assertEqual(prices.break_percent(WHEAT_550, 8), Decimal(0))

    def test_next_break(self):
        step, missing = PriceList().next_break(WHEAT_550, 33)
        self.assertEqual((step.sacks, missing), (40, 7))
        self.assertIsNone(PriceList().next_break(WHEAT_550, 400))
