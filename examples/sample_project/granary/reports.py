"""Lists for people: ageing of what is owed, sales by product, what is on the shelves."""

from collections import defaultdict

from granary.dates import days_late
from granary.money import Money, total_of
from granary.textable import render

BUCKETS = ("not due", "1-30", "31-60", "61-90", "over 90")


def bucket(due, today):
    """In which column of the ageing list an amount stands."""
    late = days_late(due, today)
    if late == 0:
        return "not due"
    if late < 30:
        return "1-30"
    if late < 60:
        return "31-60"
    if late < 90:
        return "61-90"
    return "over 90"


def ageing(invoices, today):
    """What each customer owes, by how late it is: {customer: {bucket: Money}}."""
    table = defaultdict(lambda: {name: Money.zero() for name in BUCKETS})
    for row in invoices:
        if row["open"].cents > 0:
            name = bucket(row["due"], today)
            table[row["customer"]][name] = table[row["customer"]][name] + row["open"]
    return dict(sorted(table.items()))


def ageing_text(invoices, today):
    table = ageing(invoices, today)
    rows = [[customer, *amounts.values(), total_of(amounts.values())] for customer, amounts in table.items()]
    sums = [total_of(amounts[name] for amounts in table.values()) for name in BUCKETS]
    return render(["customer", *BUCKETS, "total"], rows, total=["", *sums, total_of(sums)])


def sales_by_product(invoices):
    """Sacks and net sales of each product, best sellers first. Takes Invoice objects, credit notes included."""
    sacks, nets = defaultdict(int), defaultdict(Money.zero)
    for invoice in invoices:
        for line in invoice.lines:
            if line.sku:
                sacks[line.sku] += line.sacks
                nets[line.sku] = nets[line.sku] + line.net
    return sorted(((sku, sacks[sku], nets[sku]) for sku in nets), key=lambda row: (-row[2].cents, row[0]))


def sales_text(invoices, catalog):
    rows = [[sku, catalog.get(sku).name, count, net] for sku, count, net in sales_by_product(invoices)]
    return render(["sku", "product", "sacks", "net"], rows, total=["", "", None, total_of(row[3] for row in rows)])


def shelves_text(stock, catalog, today):
    """Every product with stock: on hand, reserved, free to sell, the nearest best-before date."""
    rows = []
    for sku, product in sorted(catalog.products.items()):
        lots = [lot for lot in stock.lots_of(sku) if lot.quantity]
        if lots:
            nearest = min(lot.best_before for lot in lots)
            kilos = [stock.on_hand(sku) // 1000, stock.reserved(sku) // 1000, stock.free(sku, today).grams // 1000]
            rows.append([sku, product.name, *kilos, nearest])
    return render(["sku", "product", "on hand kg", "reserved kg", "free kg", "best before"], rows)
