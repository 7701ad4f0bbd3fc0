import os
import tempfile
import unittest

from granary import catalog
from granary.errors import RowError, UnknownProduct
from granary.money import Money
from tests import sample

HEADER = "sku;name;group;price_per_kg;sack_kg;sacks_per_pallet;tax_class;shelf_days;barcode\n"


def load(text):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "products.csv")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return catalog.load(path)


class CatalogTest(unittest.TestCase):
    def test_unknown_product(self):
        with self.assertRaises(UnknownProduct):
            sample.catalog().get("W405-25")

    def test_find_by_words(self):
        self.assertEqual([product.sku for product in sample.catalog().find("FLOUR type")], ["R1150-25", "S630-10", "W550-25"])

    def test_groups(self):
        self.assertEqual(sample.catalog().group("rye"), [sample.RYE_1150])

    def test_sack_price(self):
        self.assertEqual(sample.WHEAT_550.sack_price(), Money(1550))


class LoadTest(unittest.TestCase):
    def test_good_rows(self):
        loaded, problems = load(HEADER + "W405-25;Wheat flour type 405;wheat;0,66;25;40;food;270;4006381333931\n")
        self.assertEqual(problems, [])
        self.assertEqual(loaded.get("W405-25").price, Money(66))

    def test_bad_rows_are_named(self):
        loaded, problems = load(HEADER + "A;A;rye;cheap\n\nB;B;rye;0,50;;;;;4006381333932\n;C;rye;1\n")
        self.assertEqual(len(loaded), 0)
        self.assertEqual(
            [str(problem) for problem in problems],
            [
                "row 2: price_per_kg: not an amount: 'cheap'",
                "row 5: sku is empty",
                "row 4: B: 4006381333932 is not an EAN-13 code",
            ],
        )

    def test_a_missing_column_stops_the_file(self):
        with self.assertRaises(RowError):
            load("sku;name\nA;B\n")

    def test_the_real_file(self):
        path = os.path.join(os.path.dirname(__file__), "..", "data", "products.csv")
        loaded, problems = catalog.load(path)
        self.assertEqual(problems, [])
        self.assertGreater(len(loaded), 40)
