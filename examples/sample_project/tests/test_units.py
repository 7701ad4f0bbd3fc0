import unittest
from decimal import Decimal

from granary.errors import UnitError
from granary.units import Packing, Quantity

SMALL = Packing(sack_kg=10, sacks_per_pallet=80)


class QuantityTest(unittest.TestCase):
    def test_units_of_weight(self):
        self.assertEqual(Quantity.of(1.5, "t"), Quantity(1_500_000))
        self.assertEqual(Quantity.parse("250kg").kg, Decimal(250))

    def test_a_sack_depends_on_the_packing(self):
        self.assertEqual(Quantity.parse("3 sacks"), Quantity(75_000))
        self.assertEqual(Quantity.parse("3 sacks", SMALL), Quantity(30_000))

    def test_what_cannot_be_read(self):
        for text in ("", "sacks", "3 crates", "1.2.3 kg"):
            with self.subTest(text=text), self.assertRaises(UnitError):
                Quantity.parse(text)

    def test_half_a_gram_is_refused(self):
        with self.assertRaises(UnitError):
            Quantity.of("0.0005", "kg")

    def test_whole_sacks_and_the_rest(self):
        self.assertEqual(Quantity.of(80, "kg").sacks(Packing()), (3, 5_000))

    def test_description(self):
        self.assertEqual(Quantity.of(2_087.5, "kg").describe(), "2 pallets, 3 sacks, 12.5 kg")
        self.assertEqual(Quantity(0).describe(), "0 kg")
        self.assertEqual(Quantity.of(1, "pallet", SMALL).describe(SMALL), "1 pallet")
