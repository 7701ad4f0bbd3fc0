import unittest
from datetime import date

from granary.ids import creditor_reference
from granary.money import Money
from granary.payments import OpenItem, Payment, settle


def item(number="INV-2025-00317", amount=128_460, customer="C-20418", due=date(2025, 4, 14), issued=date(2025, 3, 14)):
    return OpenItem(number, customer, issued, due, Money(amount))


def payment(amount=128_460, reference="", text="", received=date(2025, 4, 10)):
    return Payment(received, Money(amount), "Backhaus Lindner GmbH", text, reference)


class SettleTest(unittest.TestCase):
    def test_by_reference(self):
        result = settle(payment(reference=creditor_reference("INV-2025-00317")), [item()])
        self.assertTrue(result.settled)
        self.assertEqual([(match.invoice, match.how) for match in result.matches], [("INV-2025-00317", "reference")])

    def test_reference_with_too_much_money(self):
        result = settle(payment(130_000, creditor_reference("INV-2025-00317")), [item()])
        self.assertEqual(result.left, Money(1_540))

    def test_exact_amount(self):
        result = settle(payment(), [item("INV-2025-00316", 5_000), item()])
        self.assertEqual([(match.invoice, match.how) for match in result.matches], [("INV-2025-00317", "exact amount")])

    def test_cash_discount_in_time(self):
        result = settle(payment(125_891, received=date(2025, 3, 24)), [item()])
        self.assertEqual([match.how for match in result.matches], ["cash discount"])

    def test_cash_discount_too_late(self):
        result = settle(payment(125_891, received=date(2025, 3, 25)), [item()])
        self.assertEqual((result.matches, result.left), ([], Money(125_891)))

    def test_oldest_first(self):
        items = [item(), item("INV-2025-00290", 50_000, due=date(2025, 4, 1))]
        result = settle(payment(60_000), items, customer="C-20418")
        self.assertEqual(
            [(match.invoice, match.amount) for match in result.matches],
            [("INV-2025-00290", Money(50_000)), ("INV-2025-00317", Money(10_000))],
        )
