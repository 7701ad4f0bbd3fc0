import unittest

from granary.errors import GranaryError, OutOfStock
from granary.events import Events
from granary.stock import Stock
from granary.units import Quantity
from tests.sample import RYE_1150, TODAY, WHEAT_550, lot

SACK = Quantity.of(1, "sack")


def stock(*lots, events=None):
    made = Stock(events)
    for each in lots:
        made.receive(each)
    return made


class StockTest(unittest.TestCase):
    def test_reserved_goods_are_not_free(self):
        shelf = stock(lot("L-0871", sacks=10))
        shelf.reserve("SO-88231", WHEAT_550.sku, Quantity.of(4, "sack"), TODAY)
        self.assertEqual(shelf.free(WHEAT_550.sku, TODAY), Quantity.of(6, "sack"))
        self.assertEqual(shelf.on_hand(WHEAT_550.sku), 250_000)
        self.assertEqual(shelf.reserved(WHEAT_550.sku), 100_000)

    def test_release_gives_everything_back(self):
        shelf = stock(lot("L-0871", sacks=10))
        shelf.reserve("SO-88231", WHEAT_550.sku, SACK, TODAY)
        shelf.release("SO-88231")
        self.assertEqual(shelf.free(WHEAT_550.sku, TODAY), Quantity.of(10, "sack"))
        self.assertEqual(shelf.release("SO-88231"), [])

    def test_shipping_empties_the_shelf(self):
        shelf = stock(lot("L-0871", sacks=1))
        shelf.reserve("SO-88231", WHEAT_550.sku, SACK, TODAY)
        shelf.ship("SO-88231")
        self.assertEqual(shelf.on_hand(WHEAT_550.sku), 0)
        with self.assertRaises(GranaryError):
            shelf.ship("SO-88231")

    def test_too_much_reserves_nothing(self):
        events = Events()
        shelf = stock(lot("L-0871", sacks=1), events=events)
        with self.assertRaises(OutOfStock):
            shelf.reserve("SO-88231", WHEAT_550.sku, Quantity.of(2, "sack"), TODAY)
        self.assertEqual(shelf.reserved(WHEAT_550.sku), 0)
        self.assertEqual(str(events.named("stock.short")[0]), "#2 stock.short order=SO-88231 sku=W550-25 wanted=50 available=25")

    def test_a_lot_comes_in_once(self):
        shelf = stock(lot("L-0871"))
        with self.assertRaises(GranaryError):
            shelf.receive(lot("L-0871"))

    def test_recall_names_the_orders(self):
        shelf = stock(lot("L-0871", sacks=2), lot("L-0900", product=RYE_1150))
        shelf.reserve("SO-88232", WHEAT_550.sku, SACK, TODAY)
        shelf.reserve("SO-88231", WHEAT_550.sku, SACK, TODAY)
        shelf.reserve("SO-88233", RYE_1150.sku, SACK, TODAY)
        self.assertEqual(shelf.recall("L-0871"), ["SO-88231", "SO-88232"])
