"""What a customer pays for a quantity: list price, grade, quantity breaks, agreed prices, in that order.

An agreed price replaces everything before it. The result says how it came about, because customers ask.
"""

from dataclasses import dataclass, field
from decimal import Decimal

from granary.money import Money

GRADE_DISCOUNT = {"standard": Decimal(0), "bakery": Decimal(3), "mill": Decimal(7), "export": Decimal(5)}


@dataclass(frozen=True)
class Break:
    """From `sacks` sacks on, `percent` off."""

    sacks: int
    percent: Decimal


DEFAULT_BREAKS = (
    Break(10, Decimal(2)),
    Break(40, Decimal(5)),
    Break(120, Decimal(8)),
    Break(400, Decimal(11)),
)


@dataclass(frozen=True)
class Quote:
    sku: str
    sacks: int
    unit: Money
    total: Money
    because: tuple[str, ...]


@dataclass
class PriceList:
    breaks: tuple[Break, ...] = DEFAULT_BREAKS
    agreed: dict[tuple[str, str], Money] = field(default_factory=dict)
    group_breaks: dict[str, tuple[Break, ...]] = field(default_factory=dict)

    def agree(self, customer, sku, sack_price):
        """Fix the price of a sack for one customer."""
        self.agreed[customer, sku] = sack_price

    def breaks_for(self, product):
        return self.group_breaks.get(product.group, self.breaks)

    def break_percent(self, product, sacks):
        """The best quantity break that this many sacks reach."""
        reached = [step.percent for step in self.breaks_for(product) if sacks > step.sacks]
        return max(reached, default=Decimal(0))

    def quote(self, product, customer, sacks):
        """The price of `sacks` sacks of a product for a customer."""
        base = product.sack_price()
        fixed = self.agreed.get((customer.number, product.sku))
        if fixed is not None:
            return Quote(product.sku, sacks, fixed, fixed.times(sacks), (f"agreed price {fixed}",))
        because = [f"list price {base}"]
        unit = base
        grade = GRADE_DISCOUNT[customer.grade]
        if grade:
            unit = unit - base.percent(grade)
            because.append(f"{customer.grade} -{grade} %")
        quantity = self.break_percent(product, sacks)
        if quantity:
            unit = unit - base.percent(quantity)
            because.append(f"{sacks} sacks -{quantity} %")
        return Quote(product.sku, sacks, unit, unit.times(sacks), tuple(because))

    def next_break(self, product, sacks):
        """The next break and how many sacks are missing for it, or None: sales staff mention it on the phone."""
        ahead = [step for step in self.breaks_for(product) if step.sacks > sacks]
        if not ahead:
            return None
        step = min(ahead, key=lambda step: step.sacks)
        return step, step.sacks - sacks
