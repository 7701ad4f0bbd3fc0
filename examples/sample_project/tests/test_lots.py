import unittest
from datetime import date

from granary import lots
from granary.errors import OutOfStock
from granary.units import Quantity
from tests.sample import TODAY, WHEAT_550, lot


class PickTest(unittest.TestCase):
    def test_takes_from_several_lots(self):
        shelf = [lot("L-0871", sacks=4), lot("L-0932", sacks=10)]
        picks = lots.pick(shelf, WHEAT_550.sku, Quantity.of(6, "sack"), TODAY)
        self.assertEqual([(pick.lot, pick.quantity.kg) for pick in picks], [("L-0871", 100), ("L-0932", 50)])

    def test_not_enough(self):
        with self.assertRaises(OutOfStock) as caught:
            lots.pick([lot("L-0871", sacks=4)], WHEAT_550.sku, Quantity.of(5, "sack"), TODAY)
        self.assertEqual(str(caught.exception), "W550-25: 125 kg wanted, 100 kg available")

    def test_old_lots_are_left_on_the_shelf(self):
        shelf = [lot("L-0455", best_before=date(2025, 3, 20))]
        self.assertEqual(lots.available(shelf, TODAY), Quantity(0))

    def test_three_weeks_to_the_day_is_enough(self):
        self.assertTrue(lot("L-0455", best_before=date(2025, 4, 4)).sellable(TODAY))
        self.assertFalse(lot("L-0455", best_before=date(2025, 4, 3)).sellable(TODAY))

    def test_empty_lots_are_skipped(self):
        self.assertEqual(lots.picking_order([lot("L-0871", sacks=0)], TODAY), [])


class ExpiringTest(unittest.TestCase):
    def test_soonest_first(self):
        shelf = [
            lot("L-0871", best_before=date(2025, 4, 12)),
            lot("L-0932", best_before=date(2025, 4, 8)),
            lot("L-1001", best_before=date(2025, 12, 1)),
        ]
        self.assertEqual([found.code for found in lots.expiring(shelf, TODAY, within_days=14)], ["L-0932", "L-0871"])
