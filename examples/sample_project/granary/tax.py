"""Value added tax: rates by country and class, and when it is not charged at all."""

from dataclasses import dataclass
from decimal import Decimal

from granary.money import Money

HOME = "DE"
UNION = {"AT", "BE", "CZ", "DE", "DK", "ES", "FR", "IT", "LU", "NL", "PL", "SE"}

RATES = {
    "DE": {"food": Decimal(7), "feed": Decimal(7), "service": Decimal(19), "packaging": Decimal(19)},
    "AT": {"food": Decimal(10), "feed": Decimal(13), "service": Decimal(20), "packaging": Decimal(20)},
    "FR": {"food": Decimal("5.5"), "feed": Decimal(10), "service": Decimal(20), "packaging": Decimal(20)},
    "NL": {"food": Decimal(9), "feed": Decimal(9), "service": Decimal(21), "packaging": Decimal(21)},
    "PL": {"food": Decimal(5), "feed": Decimal(8), "service": Decimal(23), "packaging": Decimal(23)},
}


@dataclass(frozen=True)
class TaxLine:
    """Tax on one rate: what it was computed on, the rate, and how much."""

    rate: Decimal
    net: Money
    tax: Money
    note: str = ""


def treatment(customer):
    """`domestic`, `reverse charge` (a business elsewhere in the union), `private` (its consumers) or `export`."""
    country = customer.address.country
    if country == HOME:
        return "domestic"
    if country in UNION:
        return "reverse charge" if customer.vat_id else "private"
    return "export"


def rate_for(customer, tax_class):
    kind = treatment(customer)
    if kind in ("reverse charge", "export"):
        return Decimal(0)
    country = HOME if kind == "domestic" else customer.address.country
    return RATES.get(country, RATES[HOME])[tax_class]


def tax_lines(customer, nets):
    """Tax on amounts given as (tax class, net) pairs: one line for each rate, highest rate first."""
    by_rate = {}
    for tax_class, net in nets:
        rate = rate_for(customer, tax_class)
        by_rate[rate] = by_rate[rate] + net if rate in by_rate else net
    note = {"reverse charge": "VAT due by the recipient", "export": "VAT-free export"}.get(treatment(customer), "")
    lines = []
    for rate in sorted(by_rate, reverse=True):
        net = by_rate[rate]
        tax = Money(round(net.cents * float(rate) / 100), net.currency)
        lines.append(TaxLine(rate, net, tax, note))
    return lines


def looks_like_vat_id(text):
    """A rough check before the official service is asked: two letters, then eight to twelve digits or letters."""
    text = text.replace(" ", "").upper()
    return text[:2] in UNION and 10 <= len(text) <= 14 and text[2:].isalnum()
