"""What is sold: products, their packing, their base prices."""

from dataclasses import dataclass, field

from granary import csvio
from granary.errors import UnknownProduct
from granary.ids import is_ean13
from granary.money import Money
from granary.units import Packing


@dataclass(frozen=True)
class Product:
    """One thing in the catalog. `price` is for one kilogram, before any discount."""

    sku: str
    name: str
    group: str
    price: Money
    packing: Packing = Packing()
    tax_class: str = "food"
    shelf_days: int = 270
    barcode: str = ""

    def sack_price(self):
        return self.price.times(self.packing.sack_kg)


@dataclass
class Catalog:
    products: dict[str, Product] = field(default_factory=dict)

    def add(self, product):
        self.products[product.sku] = product

    def get(self, sku):
        try:
            return self.products[sku]
        except KeyError:
            raise UnknownProduct(sku) from None

    def __contains__(self, sku):
        return sku in self.products

    def __len__(self):
        return len(self.products)

    def group(self, name):
        """The products of one group, by sku."""
        return [product for _, product in sorted(self.products.items()) if product.group == name]

    def find(self, words):
        """Products whose name holds every word, whatever the case."""
        wanted = [word.casefold() for word in words.split()]
        return [
            product
            for _, product in sorted(self.products.items())
            if all(word in product.name.casefold() for word in wanted)
        ]


COLUMNS = [
    csvio.Column("sku"),
    csvio.Column("name"),
    csvio.Column("group"),
    csvio.Column("price_per_kg", csvio.amount),
    csvio.Column("sack_kg", csvio.integer, default=25),
    csvio.Column("sacks_per_pallet", csvio.integer, default=40),
    csvio.Column("tax_class", default="food"),
    csvio.Column("shelf_days", csvio.integer, default=270),
    csvio.Column("barcode", default=""),
]


def load(path):
    """Read the catalog file. Returns the catalog and the rows that were refused."""
    catalog = Catalog()
    rows, problems = csvio.read(path, COLUMNS)
    for number, row in rows:
        if row["barcode"] and not is_ean13(row["barcode"]):
            problems.append(csvio.problem(number, f"{row['sku']}: {row['barcode']} is not an EAN-13 code"))
            continue
        catalog.add(
            Product(
                sku=row["sku"],
                name=row["name"],
                group=row["group"],
                price=row["price_per_kg"],
                packing=Packing(row["sack_kg"], row["sacks_per_pallet"]),
                tax_class=row["tax_class"],
                shelf_days=row["shelf_days"],
                barcode=row["barcode"],
            )
        )
    return catalog, problems
