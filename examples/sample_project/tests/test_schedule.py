import unittest
from datetime import date

from granary.schedule import Rhythm, StandingOrder, workload

MONDAY = date(2025, 3, 3)


class RhythmTest(unittest.TestCase):
    def test_twice_a_week(self):
        rhythm = Rhythm(MONDAY, weekdays=("tue", "fri"))
        self.assertEqual(
            rhythm.days(date(2025, 3, 3), date(2025, 3, 14)),
            [date(2025, 3, 4), date(2025, 3, 7), date(2025, 3, 11), date(2025, 3, 14)],
        )

    def test_every_other_week(self):
        self.assertEqual(Rhythm(MONDAY, every=2).days(MONDAY, date(2025, 3, 31)), [MONDAY, date(2025, 3, 17), date(2025, 3, 31)])

    def test_holidays_move_forward(self):
        rhythm = Rhythm(date(2025, 4, 14), weekdays=("fri",))
        self.assertEqual(rhythm.days(date(2025, 4, 14), date(2025, 4, 25)), [date(2025, 4, 22), date(2025, 4, 25)])

    def test_end_of_month(self):
        rhythm = Rhythm(date(2025, 1, 31), unit="month")
        self.assertEqual(rhythm.days(date(2025, 2, 1), date(2025, 4, 30)), [date(2025, 2, 28), date(2025, 3, 31), date(2025, 4, 30)])

    def test_monthly_over_new_year(self):
        rhythm = Rhythm(date(2024, 10, 15), unit="month", every=2)
        self.assertEqual(rhythm.days(date(2024, 12, 1), date(2025, 2, 28)), [date(2024, 12, 16), date(2025, 2, 17)])


class StandingOrderTest(unittest.TestCase):
    def test_pauses(self):
        order = StandingOrder("C-20418", "W550-25", 12, Rhythm(MONDAY), ((date(2025, 3, 10), date(2025, 3, 16)),))
        self.assertEqual(order.deliveries(MONDAY, date(2025, 3, 17)), [(MONDAY, 12), (date(2025, 3, 17), 12)])

    def test_workload(self):
        orders = [StandingOrder("C-20418", "W550-25", 12, Rhythm(MONDAY)), StandingOrder("C-20077", "R1150-25", 3, Rhythm(MONDAY))]
        self.assertEqual(list(workload(orders, MONDAY, date(2025, 3, 5)).values()), [15, 0, 0])
