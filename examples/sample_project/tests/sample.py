"""Products, customers and documents that several tests use."""

from datetime import date
from decimal import Decimal

from granary.catalog import Catalog, Product
from granary.customers import Address, Customer, Customers
from granary.ids import Sequence
from granary.invoices import Invoicing
from granary.lots import Lot
from granary.money import Money
from granary.orders import Order
from granary.pricing import PriceList
from granary.units import Packing, Quantity

TODAY = date(2025, 3, 14)

WHEAT_550 = Product("W550-25", "Wheat flour type 550", "wheat", Money(62), Packing(25, 40))
RYE_1150 = Product("R1150-25", "Rye flour type 1150", "rye", Money(58), Packing(25, 40))
SPELT_630 = Product("S630-10", "Spelt flour type 630", "spelt", Money(149), Packing(10, 80))
BRAN = Product("BRAN-15", "Wheat bran, coarse", "feed", Money(31), Packing(15, 50), tax_class="feed")

BAKERY = Customer(
    "C-20418", "Backhaus Lindner GmbH", "bakery", "net 30", Money(1_500_000), "DE812345670", Address(country="DE")
)
SHOP = Customer("C-20077", "Hofladen Everding", "standard", "cash", Money(40_000), "", Address(country="DE"))
AUSTRIAN = Customer("C-20433", "Mühle Hutter KG", "mill", "eom 30", Money(0), "ATU62817034", Address(country="AT"))
SWISS = Customer("C-20501", "Bäckerei Rüegg", "export", "net 14", Money(0), "", Address(country="CH"))


def catalog():
    made = Catalog()
    for product in (WHEAT_550, RYE_1150, SPELT_630, BRAN):
        made.add(product)
    return made


def customers():
    made = Customers()
    for customer in (BAKERY, SHOP, AUSTRIAN, SWISS):
        made.add(customer)
    return made


def lot(code, product=WHEAT_550, sacks=40, best_before=date(2025, 9, 30), received=date(2025, 1, 7), place="A-01"):
    return Lot(code, product.sku, received, best_before, Quantity.of(sacks, "sack", product.packing), place)


def shipped(number="SO-88231", customer=BAKERY, lines=((WHEAT_550, 20), (RYE_1150, 12))):
    order = Order(number, customer.number, TODAY)
    for product, sacks in lines:
        order.add(product, customer, sacks, PriceList())
    order.move("confirmed", TODAY)
    order.move("shipped", TODAY)
    return order


def invoicing(last=316):
    return Invoicing(Sequence("INV", {2025: last}), Sequence("CN", {2025: 40}))


def percent(text):
    return Decimal(text)
