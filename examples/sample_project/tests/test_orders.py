import unittest

from granary.errors import CreditLimit, OrderState, OutOfStock
from granary.money import Money
from granary.orders import Order, OrderDesk
from granary.pricing import PriceList
from granary.stock import Stock
from granary.units import Quantity
from tests import sample
from tests.sample import BAKERY, RYE_1150, SHOP, TODAY, WHEAT_550, lot


def desk(*lots):
    stock = Stock()
    for each in lots:
        stock.receive(each)
    return OrderDesk(sample.catalog(), sample.customers(), PriceList(), stock)


def draft(customer, *lines):
    order = Order("SO-88231", customer.number, TODAY)
    for product, sacks in lines:
        order.add(product, customer, sacks, PriceList())
    return order


class OrderTest(unittest.TestCase):
    def test_states_follow_each_other(self):
        order = draft(SHOP, (WHEAT_550, 1))
        for state in ("confirmed", "shipped", "invoiced"):
            order.move(state, TODAY)
        self.assertEqual([state for state, _ in order.history], ["confirmed", "shipped", "invoiced"])

    def test_a_wrong_step_says_what_is_allowed(self):
        with self.assertRaises(OrderState) as caught:
            draft(SHOP, (WHEAT_550, 1)).move("invoiced", TODAY)
        self.assertEqual(str(caught.exception), "SO-88231 is draft: cancelled, confirmed may follow, not invoiced")

    def test_an_empty_order_is_not_confirmed(self):
        with self.assertRaises(OrderState):
            draft(SHOP).move("confirmed", TODAY)

    def test_weight(self):
        order = draft(SHOP, (WHEAT_550, 2), (RYE_1150, 1))
        self.assertEqual(order.quantity(sample.catalog()), Quantity.of(75, "kg"))

    def test_numbers_are_checked(self):
        with self.assertRaises(ValueError):
            Order("88231", "C-20418", TODAY)


class DeskTest(unittest.TestCase):
    def test_confirming_reserves(self):
        made = desk(lot("L-0871", sacks=10))
        made.confirm(draft(BAKERY, (WHEAT_550, 4)), Money(0), TODAY)
        self.assertEqual(made.stock.reserved(WHEAT_550.sku), 100_000)

    def test_one_short_line_reserves_nothing(self):
        made = desk(lot("L-0871", sacks=10))
        order = draft(BAKERY, (WHEAT_550, 4), (RYE_1150, 1))
        with self.assertRaises(OutOfStock):
            made.confirm(order, Money(0), TODAY)
        self.assertEqual((order.state, made.stock.reserved(WHEAT_550.sku)), ("draft", 0))

    def test_credit_comes_first(self):
        with self.assertRaises(CreditLimit):
            desk().confirm(draft(SHOP, (WHEAT_550, 1)), Money(40_000), TODAY)

    def test_cancelling_releases(self):
        made = desk(lot("L-0871", sacks=10))
        order = draft(BAKERY, (WHEAT_550, 4))
        made.confirm(order, Money(0), TODAY)
        made.cancel(order, TODAY)
        self.assertEqual(made.stock.reserved(WHEAT_550.sku), 0)

    def test_shipping(self):
        made = desk(lot("L-0871", sacks=10))
        order = draft(BAKERY, (WHEAT_550, 4))
        made.confirm(order, Money(0), TODAY)
        self.assertEqual([pick.lot for pick in made.ship(order, TODAY)], ["L-0871"])
