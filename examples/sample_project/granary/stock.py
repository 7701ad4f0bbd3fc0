"""The warehouse: lots on shelves, and what is reserved for orders that have not left yet."""

from collections import defaultdict

from granary import lots
from granary.errors import GranaryError, OutOfStock
from granary.units import Quantity


class Stock:
    """Lots by code, reservations by order. Every change goes through `receive`, `reserve`, `release` or `ship`."""

    def __init__(self, events=None):
        self._lots = {}
        self._reserved = defaultdict(list)
        self._events = events

    def receive(self, lot):
        if lot.code in self._lots:
            raise GranaryError(f"lot {lot.code} is already here")
        self._lots[lot.code] = lot
        self._tell("stock.received", lot=lot.code, sku=lot.sku, grams=lot.quantity.grams)

    def lot(self, code):
        return self._lots[code]

    def lots_of(self, sku):
        return [lot for _, lot in sorted(self._lots.items()) if lot.sku == sku]

    def on_hand(self, sku):
        """Everything on the shelves, sellable or not."""
        return sum((lot.quantity.grams for lot in self.lots_of(sku)), 0)

    def reserved(self, sku):
        codes = {lot.code for lot in self.lots_of(sku)}
        return sum(pick.quantity.grams for picks in self._reserved.values() for pick in picks if pick.lot in codes)

    def free(self, sku, today):
        """What an order placed today could still get."""
        return lots.available(self._unreserved(sku), today)

    def reserve(self, order, sku, wanted, today):
        """Set `wanted` of a product aside for an order. Raises OutOfStock, and then sets nothing aside."""
        try:
            picks = lots.pick(self._unreserved(sku), sku, wanted, today)
        except OutOfStock as error:
            self._tell("stock.short", order=order, sku=sku, wanted=str(error.wanted), available=str(error.available))
            raise
        self._reserved[order].extend(picks)
        self._tell("stock.reserved", order=order, sku=sku, lots=[pick.lot for pick in picks])
        return picks

    def release(self, order):
        """Give back what was set aside; an order without reservations is left alone."""
        picks = self._reserved.pop(order, [])
        if picks:
            self._tell("stock.released", order=order, lots=[pick.lot for pick in picks])
        return picks

    def ship(self, order):
        """Take what was set aside off the shelves. Empty lots stay, so that a recall finds them."""
        picks = self._reserved.pop(order, [])
        if not picks:
            raise GranaryError(f"nothing is reserved for {order}")
        for pick in picks:
            self._lots[pick.lot] = self._lots[pick.lot].less(pick.quantity)
        self._tell("stock.shipped", order=order, lots=[pick.lot for pick in picks])
        return picks

    def recall(self, code):
        """Orders that hold a reservation on a lot: whom to call when it must not be sold."""
        return sorted(order for order, picks in self._reserved.items() if any(pick.lot == code for pick in picks))

    def _unreserved(self, sku):
        taken = defaultdict(int)
        for picks in self._reserved.values():
            for pick in picks:
                taken[pick.lot] += pick.quantity.grams
        return [lot.less(Quantity(taken[lot.code])) for lot in self.lots_of(sku)]

    def _tell(self, name, **facts):
        if self._events is not None:
            self._events.emit(name, **facts)
