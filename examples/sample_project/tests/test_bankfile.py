import unittest
from datetime import date

from granary import bankfile
from granary.money import Money

LINE = "14.03.2025|84,60|EUR|C|Hofladen Everding||Barverkauf"


class BookingTest(unittest.TestCase):
    def test_fields(self):
        sign, payment = bankfile.booking(LINE)
        self.assertEqual(sign, "C")
        self.assertEqual((payment.received, payment.amount), (date(2025, 3, 14), Money(8_460)))
        self.assertEqual((payment.payer, payment.text), ("Hofladen Everding", "Barverkauf"))

    def test_money_that_went_out(self):
        statement = bankfile.parse([LINE.replace("|C|", "|D|")])
        self.assertEqual((len(statement.payments), len(statement.outgoing)), (0, 1))


class ParseTest(unittest.TestCase):
    def test_bad_lines_are_rejected_with_their_number(self):
        statement = bankfile.parse(["# 14.03.2025", LINE, "", "a|b", LINE.replace("84,60", "84.60"), LINE.replace("14.03", "34.03")])
        self.assertEqual(
            [str(error) for error in statement.rejected],
            [
                "row 4: 7 fields expected, 2 found",
                "row 5: not an amount in German notation: '84.60'",
                "row 6: day is out of range for month",
            ],
        )
        self.assertEqual(statement.lines, 4)

    def test_small_amounts(self):
        self.assertEqual(bankfile.amount("0,05"), Money(5))
        self.assertEqual(bankfile.amount("999,99"), Money(99_999))
