import unittest
from datetime import date

from granary import reports
from granary.money import Money
from granary.stock import Stock
from tests import sample
from tests.sample import BAKERY, RYE_1150, TODAY, WHEAT_550, lot


def row(customer, amount, due):
    return {"customer": customer, "open": Money(amount), "due": due}


class AgeingTest(unittest.TestCase):
    def test_not_due_and_long_due(self):
        self.assertEqual(reports.bucket(date(2025, 3, 14), TODAY), "not due")
        self.assertEqual(reports.bucket(date(2025, 3, 1), TODAY), "1-30")
        self.assertEqual(reports.bucket(date(2024, 11, 1), TODAY), "over 90")

    def test_by_customer(self):
        rows = [row("C-20418", 500, date(2025, 2, 1)), row("C-20418", 700, date(2025, 2, 2)), row("C-20077", 0, TODAY)]
        table = reports.ageing(rows, TODAY)
        self.assertEqual(list(table), ["C-20418"])
        self.assertEqual(table["C-20418"]["31-60"], Money(1200))

    def test_text(self):
        text = reports.ageing_text([row("C-20418", 128_460, date(2025, 4, 14))], TODAY)
        self.assertEqual(text.splitlines()[2].split(), ["C-20418", "€", "1,284.60", "€", "0.00", "€", "0.00", "€", "0.00", "€", "0.00", "€", "1,284.60"])


class SalesTest(unittest.TestCase):
    def test_best_sellers_first(self):
        office = sample.invoicing()
        made = office.invoice(sample.shipped(), BAKERY, sample.catalog(), TODAY)
        self.assertEqual([(sku, sacks) for sku, sacks, _ in reports.sales_by_product([made])], [("W550-25", 20), ("R1150-25", 12)])


class ShelvesTest(unittest.TestCase):
    def test_text(self):
        stock = Stock()
        stock.receive(lot("L-0871", WHEAT_550, 10))
        stock.receive(lot("L-0900", RYE_1150, 0))
        lines = reports.shelves_text(stock, sample.catalog(), TODAY).splitlines()
        self.assertEqual(lines[2].split(), ["W550-25", "Wheat", "flour", "type", "550", "250", "0", "250", "2025-09-30"])
        self.assertEqual(len(lines), 3)
