"""Everything that granary raises on purpose."""


class GranaryError(Exception):
    """Base class. The nightly run catches it per order, writes it to the log and goes on."""


class MoneyError(GranaryError):
    """Amounts that cannot be added, split or read."""


class UnitError(GranaryError):
    """Quantities that cannot be converted into each other."""


class UnknownProduct(GranaryError):
    def __init__(self, sku):
        super().__init__(f"no product {sku!r} in the catalog")
        self.sku = sku


class UnknownCustomer(GranaryError):
    def __init__(self, number):
        super().__init__(f"no customer {number!r}")
        self.number = number


class OutOfStock(GranaryError):
    """There is not enough of a product, counting every lot that may still be sold."""

    def __init__(self, sku, wanted, available):
        super().__init__(f"{sku}: {wanted} kg wanted, {available} kg available")
        self.sku = sku
        self.wanted = wanted
        self.available = available


class OrderState(GranaryError):
    """An order was asked to do what its state does not allow."""


class CreditLimit(GranaryError):
    """The order would take the customer above the agreed limit."""


class RowError(GranaryError):
    """A row of an imported file is wrong. Carries the row's number, counted from one."""

    def __init__(self, row, message):
        super().__init__(f"row {row}: {message}")
        self.row = row


class QueryError(GranaryError):
    """A filter could not be read. `position` points at the first character that made no sense."""

    def __init__(self, message, position):
        super().__init__(f"{message} at position {position}")
        self.position = position


class Unbalanced(GranaryError):
    """A journal entry whose debits and credits differ."""
