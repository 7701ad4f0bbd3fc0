"""Orders and what may happen to them.

    draft -> confirmed -> shipped -> invoiced
      |          |
      +----------+--> cancelled
"""

from dataclasses import dataclass, field
from datetime import date

from granary.errors import OrderState
from granary.ids import kind_of
from granary.money import Money, total_of
from granary.units import Quantity

NEXT = {
    "draft": {"confirmed", "cancelled"},
    "confirmed": {"shipped", "cancelled"},
    "shipped": {"invoiced"},
    "invoiced": set(),
    "cancelled": set(),
}


@dataclass(frozen=True)
class OrderLine:
    sku: str
    sacks: int
    unit: Money
    total: Money
    tax_class: str = "food"
    note: str = ""


@dataclass
class Order:
    number: str
    customer: str
    placed: date
    lines: list[OrderLine] = field(default_factory=list)
    state: str = "draft"
    wanted_by: date | None = None
    history: list[tuple[str, date]] = field(default_factory=list)

    def __post_init__(self):
        if kind_of(self.number) != "order":
            raise ValueError(f"not an order number: {self.number!r}")

    def add(self, product, customer, sacks, prices):
        """Price some sacks of a product and put them on the order."""
        if self.state != "draft":
            raise OrderState(f"{self.number} is {self.state}; lines can be added to drafts only")
        quote = prices.quote(product, customer, sacks)
        note = "; ".join(quote.because)
        self.lines.append(OrderLine(product.sku, sacks, quote.unit, quote.total, product.tax_class, note))
        return quote

    def net(self):
        return total_of(line.total for line in self.lines)

    def quantity(self, catalog):
        """The weight of the whole order."""
        total = Quantity(0)
        for line in self.lines:
            total = total + Quantity.of(line.sacks, "sack", catalog.get(line.sku).packing)
        return total

    def move(self, state, day):
        """Change state, or raise OrderState and say what would be allowed."""
        if state not in NEXT[self.state]:
            allowed = ", ".join(sorted(NEXT[self.state])) or "nothing"
            raise OrderState(f"{self.number} is {self.state}: {allowed} may follow, not {state}")
        if state == "confirmed" and not self.lines:
            raise OrderState(f"{self.number} has no lines")
        self.state = state
        self.history.append((state, day))


class OrderDesk:
    """Takes orders through their states, and keeps stock in step with them."""

    def __init__(self, catalog, customers, prices, stock):
        self.catalog = catalog
        self.customers = customers
        self.prices = prices
        self.stock = stock

    def confirm(self, order, owing, today):
        """Check the credit, reserve every line, confirm. If one line is short, none stays reserved."""
        self.customers.check_credit(order.customer, owing, order.net())
        try:
            for line in order.lines:
                wanted = Quantity.of(line.sacks, "sack", self.catalog.get(line.sku).packing)
                self.stock.reserve(order.number, line.sku, wanted, today)
            order.move("confirmed", today)
        except Exception:
            self.stock.release(order.number)
            raise

    def cancel(self, order, today):
        order.move("cancelled", today)
        self.stock.release(order.number)

    def ship(self, order, today):
        order.move("shipped", today)
        return self.stock.ship(order.number)
