import unittest
from datetime import date
from decimal import Decimal

from granary import promotions
from granary.money import Money
from granary.pricing import PriceList
from granary.promotions import Promotion
from tests.sample import BAKERY, RYE_1150, SHOP, TODAY, WHEAT_550, catalog, lot

MARCH = (date(2025, 3, 1), date(2025, 3, 31))
TEN_PERCENT = Promotion("SPRING", *MARCH, percent=Decimal(10), groups=("wheat",))
ONE_FREE = Promotion("ELEVEN", *MARCH, free_sacks_per=11)


class SavingTest(unittest.TestCase):
    def test_percent(self):
        quote = PriceList().quote(WHEAT_550, SHOP, 2)
        self.assertEqual(TEN_PERCENT.saving(quote), Money(310))

    def test_free_sacks(self):
        quote = PriceList().quote(WHEAT_550, SHOP, 23)
        self.assertEqual(ONE_FREE.saving(quote), quote.unit.times(2))

    def test_the_last_day_counts(self):
        self.assertTrue(TEN_PERCENT.runs_on(date(2025, 3, 31)))
        self.assertFalse(TEN_PERCENT.runs_on(date(2025, 4, 1)))


class BestTest(unittest.TestCase):
    def test_the_largest_saving_wins(self):
        quote = PriceList().quote(WHEAT_550, SHOP, 11)
        chosen, saving = promotions.best([ONE_FREE, TEN_PERCENT], quote, WHEAT_550, SHOP, TODAY)
        self.assertEqual((chosen.code, saving), ("SPRING", Money(1671)))

    def test_only_what_covers_the_product(self):
        quote = PriceList().quote(RYE_1150, BAKERY, 4)
        self.assertEqual(promotions.best([TEN_PERCENT], quote, RYE_1150, BAKERY, TODAY), (None, Money(0)))


class ExpiringTest(unittest.TestCase):
    def test_one_for_each_product(self):
        shelf = [lot("L-0871", best_before=date(2025, 4, 8)), lot("L-0932", best_before=date(2025, 4, 12))]
        made = promotions.for_expiring(shelf, catalog(), TODAY)
        self.assertEqual([(each.code, each.last_day) for each in made], [("LAST-W550-25", date(2025, 4, 12))])
