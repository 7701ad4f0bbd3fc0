"""Numbers of documents and products, and their check digits."""

import re

PATTERNS = {
    "order": re.compile(r"^SO-\d{5}$"),
    "invoice": re.compile(r"^INV-\d{4}-\d{5}$"),
    "credit note": re.compile(r"^CN-\d{4}-\d{5}$"),
    "customer": re.compile(r"^C-\d{5}$"),
    "lot": re.compile(r"^L-\d{4}$"),
}


def kind_of(number):
    """What a number names, or None: `kind_of("INV-2025-00317") == "invoice"`."""
    for kind, pattern in PATTERNS.items():
        if pattern.match(number):
            return kind
    return None


class Sequence:
    """Hands out document numbers without gaps, one run for each year."""

    def __init__(self, prefix, last=None):
        self.prefix = prefix
        self.last = dict(last or {})

    def next(self, year):
        self.last[year] = self.last.get(year, 0) + 1
        return f"{self.prefix}-{year}-{self.last[year]:05d}"

    def peek(self, year):
        return f"{self.prefix}-{year}-{self.last.get(year, 0) + 1:05d}"


def ean13_check_digit(digits):
    """The thirteenth digit of an EAN barcode from its first twelve."""
    if len(digits) != 12 or not digits.isdigit():
        raise ValueError(f"twelve digits are needed, not {digits!r}")
    odd = sum(int(digit) for digit in digits[0::2])
    even = sum(int(digit) for digit in digits[1::2])
    return str(-(odd + 3 * even) % 10)


def is_ean13(code):
    return len(code) == 13 and code.isdigit() and ean13_check_digit(code[:12]) == code[12]


def creditor_reference(invoice):
    """The ISO 11649 reference that a customer quotes when paying: `RF` + check digits + the invoice's digits."""
    body = re.sub(r"\W", "", invoice).upper()
    remainder = int(_letters_as_numbers(body + "RF00")) % 97
    return f"RF{98 - remainder:02d}{body}"


def is_creditor_reference(text):
    text = re.sub(r"\s", "", text).upper()
    if not text.startswith("RF") or not text.isalnum() or len(text) < 5:
        return False
    return int(_letters_as_numbers(text[4:] + text[:4])) % 97 == 1


def invoice_of_reference(text):
    """The invoice number inside a creditor reference, or None if it is not one of ours."""
    text = re.sub(r"\s", "", text).upper()
    found = re.match(r"^RF\d\dINV(\d{4})(\d{5})$", text)
    if not found or not is_creditor_reference(text):
        return None
    return f"INV-{found[1]}-{found[2]}"


def _letters_as_numbers(text):
    return "".join(str(int(char, 36)) for char in text)
