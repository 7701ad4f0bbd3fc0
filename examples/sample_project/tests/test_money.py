import unittest
from decimal import Decimal

from granary.errors import MoneyError
from granary.money import Money, quantize_half_even, total_of


class MoneyTest(unittest.TestCase):
    def test_amounts_are_read_with_comma_or_point(self):
        self.assertEqual(Money.parse("12"), Money(1200))
        self.assertEqual(Money.parse("12.5"), Money(1250))
        self.assertEqual(Money.parse("-12,05"), Money(-1205))

    def test_what_is_not_an_amount_is_refused(self):
        for text in ("", "twelve", "1.2.3", "1,234", "--5"):
            with self.subTest(text=text), self.assertRaises(MoneyError):
                Money.parse(text)

    def test_currencies_do_not_mix(self):
        with self.assertRaises(MoneyError):
            Money(1) + Money(1, "CHF")

    def test_half_cents_go_to_the_even_neighbour(self):
        self.assertEqual(Money(125).times(Decimal("0.1")), Money(12))
        self.assertEqual(Money(135).times(Decimal("0.1")), Money(14))
        self.assertEqual(quantize_half_even(Decimal("-2.5")), -2)

    def test_percent(self):
        self.assertEqual(Money(1250).percent(7), Money(88))

    def test_printing(self):
        self.assertEqual(str(Money(128460)), "1,284.60 EUR")
        self.assertEqual(str(Money(-5)), "-0.05 EUR")
        self.assertEqual(Money(128460).short(), "€ 1,284.60")

    def test_total_of_nothing_is_zero(self):
        self.assertEqual(total_of([]), Money(0))


class AllocateTest(unittest.TestCase):
    def test_parts_add_up(self):
        self.assertEqual(Money(1000).allocate([1, 1, 1]), [Money(334), Money(333), Money(333)])

    def test_leftover_cents_go_to_the_heaviest_part(self):
        self.assertEqual(Money(100).allocate([1, 5, 1]), [Money(14), Money(72), Money(14)])

    def test_a_part_without_weight_gets_nothing(self):
        self.assertEqual(Money(99).allocate([0, 1]), [Money(0), Money(99)])

    def test_negative_amounts_add_up_too(self):
        parts = Money(-1000).allocate([1, 1, 1])
        self.assertEqual(total_of(parts), Money(-1000))

    def test_large_amounts_are_exact(self):
        whole = Money(9_007_199_254_740_993)
        self.assertEqual(total_of(whole.allocate([1, 2])), whole)

    def test_no_weights_at_all_is_an_error(self):
        with self.assertRaises(MoneyError):
            Money(100).allocate([0, 0])
