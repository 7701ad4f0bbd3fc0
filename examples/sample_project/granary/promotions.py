"""Promotions: temporary reductions on top of what the price list says.

Promotions never add up: the one that saves most wins, and the invoice names it.
"""

from dataclasses import dataclass
from datetime import date
from decimal import ROUND_HALF_UP, Decimal

from granary.money import Money


@dataclass(frozen=True)
class Promotion:
    code: str
    first_day: date
    last_day: date
    percent: Decimal = Decimal(0)
    free_sacks_per: int = 0
    groups: tuple[str, ...] = ()
    grades: tuple[str, ...] = ()

    def runs_on(self, day):
        return self.first_day <= day <= self.last_day

    def covers(self, product, customer):
        return (not self.groups or product.group in self.groups) and (
            not self.grades or customer.grade in self.grades
        )

    def saving(self, quote):
        """What this promotion takes off a quote."""
        off = Money.zero(quote.total.currency)
        if self.percent:
            cents = (Decimal(quote.total.cents) * self.percent / 100).quantize(Decimal(1), rounding=ROUND_HALF_UP)
            off = Money(int(cents), quote.total.currency)
        if self.free_sacks_per:
            off = off + quote.unit.times(quote.sacks // self.free_sacks_per)
        return off


def best(promotions, quote, product, customer, day):
    """The promotion that saves most on this quote, and the saving; (None, zero) if none applies."""
    chosen, most = None, Money.zero(quote.total.currency)
    for promotion in sorted(promotions, key=lambda promotion: promotion.code):
        if promotion.runs_on(day) and promotion.covers(product, customer):
            saving = promotion.saving(quote)
            if saving > most:
                chosen, most = promotion, saving
    return chosen, most


def for_expiring(lots, catalog, today, percent=Decimal(15)):
    """One promotion for each product that has lots about to expire, until the last of them does."""
    last = {}
    for lot in lots:
        last[lot.sku] = max(last.get(lot.sku, today), lot.best_before)
    return [
        Promotion(code=f"LAST-{sku}", first_day=today, last_day=day, percent=percent, groups=(catalog.get(sku).group,))
        for sku, day in sorted(last.items())
    ]
