import unittest
from datetime import date

from granary.money import Money
from granary.reminders import letter, reminders, stage_of
from tests.sample import TODAY


def row(number, due, customer="C-20418", amount=10_000):
    return {"number": number, "customer": customer, "due": due, "open": Money(amount)}


class StageTest(unittest.TestCase):
    def test_stages_begin_on_their_day(self):
        self.assertEqual(stage_of(date(2025, 3, 8), TODAY), 0)
        self.assertEqual(stage_of(date(2025, 3, 7), TODAY), 1)
        self.assertEqual(stage_of(date(2025, 2, 21), TODAY), 2)
        self.assertEqual(stage_of(date(2025, 1, 1), TODAY), 3)


class RemindersTest(unittest.TestCase):
    def test_one_for_each_customer_at_the_highest_stage(self):
        rows = [row("INV-2025-00201", date(2025, 3, 1)), row("INV-2025-00102", date(2025, 2, 10))]
        (made,) = reminders(rows, TODAY)
        self.assertEqual((made.stage, made.amount, made.fee), (2, Money(20_000), Money(500)))

    def test_not_the_same_stage_twice(self):
        rows = [row("INV-2025-00201", date(2025, 3, 1))]
        self.assertEqual(reminders(rows, TODAY, sent={"INV-2025-00201": 1}), [])

    def test_letter(self):
        (made,) = reminders([row("INV-2025-00201", date(2025, 3, 1))], TODAY)
        self.assertIn("these invoices are past due: INV-2025-00201.", letter(made, "Backhaus Lindner GmbH"))
        self.assertNotIn("fee", letter(made, "Backhaus Lindner GmbH"))
