"""Lots: what came in together, with one best-before date.

A lot is sold only while enough of its shelf life is left; what to pick first is decided here and nowhere else.
"""

from dataclasses import dataclass, replace
from datetime import date, timedelta

from granary.errors import OutOfStock
from granary.units import Quantity

MARGIN_DAYS = 21


@dataclass(frozen=True)
class Lot:
    code: str
    sku: str
    received: date
    best_before: date
    quantity: Quantity
    place: str = ""

    def sellable(self, today):
        """At least three weeks of shelf life must be left when it leaves the house."""
        return self.best_before >= today + timedelta(days=MARGIN_DAYS)

    def less(self, quantity):
        return replace(self, quantity=self.quantity - quantity)


@dataclass(frozen=True)
class Pick:
    """Take this much from that lot."""

    lot: str
    place: str
    quantity: Quantity


def picking_order(lots, today):
    """Sellable lots, the one that expires first in front; among equals the one that came in first."""
    sellable = [lot for lot in lots if lot.sellable(today) and lot.quantity]
    return sorted(sellable, key=lambda lot: (lot.code, lot.best_before, lot.received))


def available(lots, today):
    """How much could be picked today."""
    total = Quantity(0)
    for lot in picking_order(lots, today):
        total = total + lot.quantity
    return total


def pick(lots, sku, wanted, today):
    """Which lots to take `wanted` from. Raises OutOfStock, and then takes nothing."""
    mine = [lot for lot in lots if lot.sku == sku]
    there = available(mine, today)
    if there < wanted:
        raise OutOfStock(sku, wanted.kg, there.kg)
    picks, missing = [], wanted
    for lot in picking_order(mine, today):
        if not missing:
            break
        taken = min(lot.quantity, missing)
        picks.append(Pick(lot.code, lot.place, taken))
        missing = missing - taken
    return picks


def expiring(lots, today, within_days):
    """Lots that will stop being sellable within some days: candidates for a promotion."""
    horizon = today + timedelta(days=MARGIN_DAYS + within_days)
    return sorted(
        (lot for lot in lots if lot.sellable(today) and lot.best_before < horizon),
        key=lambda lot: (lot.best_before, lot.code),
    )
