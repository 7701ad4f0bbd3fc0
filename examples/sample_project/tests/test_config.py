import os
import tempfile
import unittest
from decimal import Decimal

from granary import config


def load(text, environment=None):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "granary.ini")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        try:
            return config.load(path, environment)
        except ValueError as error:
            raise ValueError(str(error).replace(path, "granary.ini")) from None


class ConfigTest(unittest.TestCase):
    def test_defaults(self):
        self.assertEqual(load(""), config.Config())

    def test_file_then_environment(self):
        loaded = load("[granary]\ncash_discount = 3\nmargin_days = 14\n", {"GRANARY_MARGIN_DAYS": "28", "HOME": "x"})
        self.assertEqual((loaded.cash_discount, loaded.margin_days), (Decimal(3), 28))

    def test_lists(self):
        loaded = load("[granary]\nlorries = big:9000, van:900\nreminder_days = 5, 10\n")
        self.assertEqual((loaded.lorries, loaded.reminder_days), ((("big", 9000), ("van", 900)), (5, 10)))

    def test_spelling_mistakes_are_errors(self):
        with self.assertRaises(ValueError) as caught:
            load("[granary]\ncurency = EUR\n")
        self.assertIn("granary.ini: unknown setting 'curency'", str(caught.exception))

    def test_nonsense_is_an_error(self):
        with self.assertRaises(ValueError) as caught:
            load("", {"GRANARY_MARGIN_DAYS": "many"})
        self.assertEqual(str(caught.exception), "the environment: margin_days = 'many' makes no sense")
