"""Quantities: kilograms, sacks, pallets, bulk tonnes.

A quantity is kept in grams. How heavy a sack is depends on the product, so conversions take its `Packing`.
"""

from dataclasses import dataclass
from decimal import Decimal, InvalidOperation

from granary.errors import UnitError

GRAMS = {"g": 1, "kg": 1_000, "t": 1_000_000}
PACKED = ("sack", "pallet")


@dataclass(frozen=True)
class Packing:
    """How a product is packed: `sack_kg` in a sack, `sacks_per_pallet` on a pallet."""

    sack_kg: int = 25
    sacks_per_pallet: int = 40

    def grams(self, unit):
        if unit in GRAMS:
            return GRAMS[unit]
        if unit == "sack":
            return self.sack_kg * 1_000
        if unit == "pallet":
            return self.sack_kg * self.sacks_per_pallet * 1_000
        raise UnitError(f"unknown unit {unit!r}")


@dataclass(frozen=True, order=True)
class Quantity:
    grams: int

    @classmethod
    def of(cls, amount, unit, packing=Packing()):
        exact = Decimal(str(amount)) * packing.grams(unit)
        if exact != exact.to_integral_value():
            raise UnitError(f"{amount} {unit} is not a whole number of grams")
        return cls(int(exact))

    @classmethod
    def parse(cls, text, packing=Packing()):
        """Read `3 sacks`, `1.5 t`, `250kg`."""
        text = text.strip().lower()
        split = next((at for at, char in enumerate(text) if char.isalpha()), len(text))
        number, unit = text[:split].strip(), text[split:].strip()
        if unit not in GRAMS and unit.endswith("s"):
            unit = unit[:-1]
        try:
            return cls.of(Decimal(number), unit, packing)
        except InvalidOperation:
            raise UnitError(f"not a quantity: {text!r}") from None

    def __add__(self, other):
        return Quantity(self.grams + other.grams)

    def __sub__(self, other):
        return Quantity(self.grams - other.grams)

    def __bool__(self):
        return self.grams != 0

    @property
    def kg(self):
        return Decimal(self.grams) / 1_000

    def sacks(self, packing):
        """Whole sacks and the grams that are left over."""
        return divmod(self.grams, packing.grams("sack"))

    def describe(self, packing=Packing()):
        """The largest units first: `2 pallets, 3 sacks, 12.5 kg`."""
        rest, words = self.grams, []
        for unit in reversed(PACKED):
            count, rest = divmod(rest, packing.grams(unit))
            if count:
                words.append(f"{count} {unit}{'s' if count != 1 else ''}")
        if rest or not words:
            words.append(f"{Decimal(rest) / 1_000:g} kg")
        return ", ".join(words)
