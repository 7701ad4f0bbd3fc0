"""Format of figures, the same in the terminal, in the HTML report and in the inspector.

A comma separates thousands. Percentages are whole, unless rounding would show "all" or "none" for almost all or
almost none. An unknown figure is a dash.
"""

from __future__ import annotations

import math

__all__ = ["UNKNOWN", "brief", "count", "decimals", "dollars", "percent", "ticks"]

UNKNOWN = "\N{EN DASH}"


def count(value: float | None) -> str:
    """Format a whole number: `1,234,567`."""
    return UNKNOWN if value is None else f"{round(value):,}"


def brief(value: float) -> str:
    """Format a number for an axis, in at most five characters: `950`, `2.5k`, `150k`, `1.2M`."""
    for size, letter in ((1_000_000_000, "G"), (1_000_000, "M"), (1_000, "k")):
        if abs(value) >= size:
            return f"{value / size:.3g}{letter}"
    return f"{value:g}"


def percent(share: float | None) -> str:
    """Format a share as a percentage: `77 %`.

    Only 0 and 1 become `0 %` and `100 %`; values close to them keep a decimal.
    """
    if share is None:
        return UNKNOWN
    scaled = share * 100
    whole = round(scaled)
    if whole in (0, 100) and not math.isclose(scaled, whole, abs_tol=1e-6):
        tenths = round(scaled, 1)
        if tenths in (0.0, 100.0):  # Too close for one decimal.
            return f"{'<' if scaled < tenths else '>'} {whole} %"
        return f"{tenths:.1f} %"
    return f"{whole} %"


def dollars(amount: float | None) -> str:
    """Format US dollars: to the cent from one dollar on, with three significant digits below. `$12.30`, `$0.0412`."""
    if amount is None:
        return UNKNOWN
    if amount < 0:
        return f"-{dollars(-amount)}"
    if amount == 0 or abs(amount) >= 1:
        return f"${amount:,.2f}"
    places = 2 - math.floor(math.log10(abs(amount)))
    return f"${amount:.{max(2, places)}f}"


def decimals(value: float | None) -> str:
    """Format a measured value with two significant digits: `0.084`, `1.2`, `35`."""
    if value is None:
        return UNKNOWN
    if value >= 10 or value == 0:
        return count(value)
    return f"{value:.2g}"


def ticks(top: float, wanted: int = 4) -> list[float]:
    """Return round numbers from 0 (steps of 1, 2 or 5 times a power of ten): about `wanted` steps, none above `top`."""
    if top <= 0:
        return [0.0]
    rough = top / wanted
    power = 10 ** math.floor(math.log10(rough))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough * 0.999)
    return [step * index for index in range(int(top / step + 1e-9) + 1)]
