import unittest
from datetime import date

from granary import dates


class EasterTest(unittest.TestCase):
    def test_known_years(self):
        self.assertEqual(dates.easter(2024), date(2024, 3, 31))
        self.assertEqual(dates.easter(2025), date(2025, 4, 20))
        self.assertEqual(dates.easter(2038), date(2038, 4, 25))


class BusinessDayTest(unittest.TestCase):
    def test_weekends_and_holidays_are_shut(self):
        self.assertFalse(dates.is_business_day(date(2025, 3, 15)))
        self.assertFalse(dates.is_business_day(date(2025, 4, 18)))
        self.assertTrue(dates.is_business_day(date(2025, 4, 17)))

    def test_next_business_day_skips_easter(self):
        self.assertEqual(dates.next_business_day(date(2025, 4, 18)), date(2025, 4, 22))

    def test_adding_days(self):
        self.assertEqual(dates.add_business_days(date(2025, 3, 14), 1), date(2025, 3, 17))
        self.assertEqual(dates.add_business_days(date(2025, 3, 15), 0), date(2025, 3, 15))


class MonthTest(unittest.TestCase):
    def test_ends_of_months(self):
        self.assertEqual(dates.end_of_month(date(2024, 2, 3)), date(2024, 2, 29))
        self.assertEqual(dates.end_of_month(date(2025, 4, 30)), date(2025, 4, 30))

    def test_adding_months_keeps_the_day_where_it_can(self):
        self.assertEqual(dates.add_months(date(2025, 1, 31), 1), date(2025, 2, 28))
        self.assertEqual(dates.add_months(date(2024, 11, 15), 3), date(2025, 2, 15))


class DueDateTest(unittest.TestCase):
    def test_cash(self):
        self.assertEqual(dates.due_date(date(2025, 3, 15), "cash"), date(2025, 3, 15))

    def test_net_moves_off_a_sunday(self):
        self.assertEqual(dates.due_date(date(2025, 3, 14), "net 30"), date(2025, 4, 14))

    def test_end_of_month(self):
        self.assertEqual(dates.due_date(date(2025, 3, 14), "eom 30"), date(2025, 4, 30))

    def test_end_of_month_in_december(self):
        self.assertEqual(dates.due_date(date(2024, 12, 5), "eom 30"), date(2025, 1, 30))

    def test_unknown_terms(self):
        with self.assertRaises(ValueError):
            dates.due_date(date(2025, 3, 14), "whenever")

    def test_days_late(self):
        self.assertEqual(dates.days_late(date(2025, 3, 14), date(2025, 3, 14)), 0)
        self.assertEqual(dates.days_late(date(2025, 3, 14), date(2025, 4, 1)), 18)
