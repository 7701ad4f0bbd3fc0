"""Who buys: customers, their terms, their limits."""

from dataclasses import dataclass, field, replace

from granary import csvio
from granary.errors import CreditLimit, UnknownCustomer
from granary.ids import kind_of
from granary.money import Money

GRADES = ("standard", "bakery", "mill", "export")


@dataclass(frozen=True)
class Address:
    street: str = ""
    town: str = ""
    postcode: str = ""
    country: str = "DE"

    def lines(self):
        return [line for line in (self.street, f"{self.postcode} {self.town}".strip(), self.country) if line]


@dataclass(frozen=True)
class Customer:
    number: str
    name: str
    grade: str = "standard"
    terms: str = "net 30"
    limit: Money = Money.zero()
    vat_id: str = ""
    address: Address = Address()
    blocked: bool = False

    def may_owe(self, owing, more):
        """Whether `more` on top of what is `owing` stays within the limit. No limit: zero."""
        if self.blocked:
            return False
        return not self.limit or owing + more <= self.limit


@dataclass
class Customers:
    known: dict[str, Customer] = field(default_factory=dict)

    def add(self, customer):
        if kind_of(customer.number) != "customer":
            raise ValueError(f"not a customer number: {customer.number!r}")
        self.known[customer.number] = customer

    def get(self, number):
        try:
            return self.known[number]
        except KeyError:
            raise UnknownCustomer(number) from None

    def block(self, number, blocked=True):
        self.known[number] = replace(self.get(number), blocked=blocked)

    def check_credit(self, number, owing, more):
        customer = self.get(number)
        if not customer.may_owe(owing, more):
            reason = "is blocked" if customer.blocked else f"has a limit of {customer.limit} and owes {owing}"
            raise CreditLimit(f"{number} {reason}; {more} more is not allowed")

    def __iter__(self):
        return iter(sorted(self.known.values(), key=lambda customer: customer.number))

    def __len__(self):
        return len(self.known)


COLUMNS = [
    csvio.Column("number"),
    csvio.Column("name"),
    csvio.Column("grade", csvio.choice(*GRADES), default="standard"),
    csvio.Column("terms", default="net 30"),
    csvio.Column("limit", csvio.amount, default=Money.zero()),
    csvio.Column("vat_id", default=""),
    csvio.Column("street", default=""),
    csvio.Column("town", default=""),
    csvio.Column("postcode", default=""),
    csvio.Column("country", default="DE"),
]


def load(path):
    """Read the customer file. Returns the customers and the rows that were refused."""
    customers = Customers()
    rows, problems = csvio.read(path, COLUMNS)
    for number, row in rows:
        address = Address(row["street"], row["town"], row["postcode"], row["country"])
        customer = Customer(row["number"], row["name"], row["grade"], row["terms"], row["limit"], row["vat_id"], address)
        try:
            customers.add(customer)
        except ValueError as error:
            problems.append(csvio.problem(number, str(error)))
    return customers, problems
