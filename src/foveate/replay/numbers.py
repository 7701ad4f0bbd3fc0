"""How figures are written, the same in the terminal and in the HTML report.

Thousands are parted by a narrow space that does not break. Percentages are whole, unless that would make "all" or
"none" of what is not quite that. What is not known is a dash. Nothing here knows what a figure means.
"""

from __future__ import annotations

import math

__all__ = ["UNKNOWN", "brief", "count", "decimals", "dollars", "percent", "plural", "ticks"]

UNKNOWN = "\N{EN DASH}"
_NARROW = "\N{NARROW NO-BREAK SPACE}"


def count(value: float | None) -> str:
    """A whole number: `1 234 567` with narrow spaces."""
    return UNKNOWN if value is None else f"{round(value):,}".replace(",", _NARROW)


def brief(value: float) -> str:
    """A number for an axis, in at most five characters: `950`, `2.5k`, `150k`, `1.2M`."""
    for size, letter in ((1_000_000, "M"), (1_000, "k")):
        if abs(value) >= size:
            return f"{value / size:.3g}{letter}"
    return f"{value:g}"


def percent(share: float | None) -> str:
    """A share as a percentage: `77 %`. Only 0 and 1 become `0 %` and `100 %`; their neighbours keep a decimal."""
    if share is None:
        return UNKNOWN
    scaled = share * 100
    whole = round(scaled)
    if whole in (0, 100) and not math.isclose(scaled, whole, abs_tol=1e-6):
        tenths = round(scaled, 1)
        if tenths in (0.0, 100.0):  # So close that a decimal does not show it either.
            return f"{'<' if scaled < tenths else '>'} {whole} %"
        return f"{tenths:.1f} %"
    return f"{whole} %"


def dollars(amount: float | None) -> str:
    """US dollars, to the cent from one dollar on, and to three digits that matter below: `$12.30`, `$0.0412`."""
    if amount is None:
        return UNKNOWN
    if amount == 0 or abs(amount) >= 1:
        return f"${amount:,.2f}".replace(",", _NARROW)
    places = 2 - math.floor(math.log10(abs(amount)))
    return f"${amount:.{max(2, places)}f}"


def decimals(value: float | None) -> str:
    """A measured time or the like, with two digits that matter: `0.084`, `1.2`, `35`."""
    if value is None:
        return UNKNOWN
    if value >= 10 or value == 0:
        return count(value)
    return f"{value:.2g}"


def plural(number: int, noun: str) -> str:
    """The number and its noun: `1 view`, `2 views`, `0 entries`."""
    if number == 1:
        return f"1 {noun}"
    if noun.endswith("y") and noun[-2:-1] not in "aeiou":
        noun = noun[:-1] + "ie"
    return f"{count(number)} {noun}s"


def ticks(top: float, wanted: int = 4) -> list[float]:
    """Round numbers from 0 on (steps of 1, 2 or 5 times a power of ten), about `wanted` steps, none above `top`."""
    if top <= 0:
        return [0.0]
    rough = top / wanted
    power = 10 ** math.floor(math.log10(rough))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough * 0.999)
    return [step * index for index in range(int(top / step + 1e-9) + 1)]
