import unittest

from granary.money import Money
from granary.textable import box, render


class RenderTest(unittest.TestCase):
    def test_numbers_to_the_right(self):
        text = render(["sku", "sacks"], [["W550-25", 8], ["R1150-25", 120]], total=["", 128])
        self.assertEqual(
            text.splitlines(),
            ["sku       sacks", "--------  -----", "W550-25       8", "R1150-25    120", "--------  -----", "            128"],
        )

    def test_money_is_short(self):
        self.assertEqual(render(["net"], [[Money(128_460)]]).splitlines()[-1], "€ 1,284.60")

    def test_no_rows(self):
        self.assertEqual(render(["a", "b"], []).splitlines(), ["a  b", "-  -"])


class BoxTest(unittest.TestCase):
    def test_lines_are_framed(self):
        self.assertEqual(box("", ["12", "3"]).splitlines(), ["+------+", "|  12  |", "|  3   |", "+------+"])
