"""Questions of an engineer that the digest alone answers, and the page that shows these digests."""

# ruff: noqa: E501 - lines of sample texts are as long as real ones
from __future__ import annotations

import re
from pathlib import Path

import pytest
from pairs import PROJECT, TEXTS, digest_of, page

from foveate.digest import digest

QUESTIONS = [
    ("which methods has the class Ledger", "Python file", ["45 class Ledger", "46  def __init__", "49  def post",
     "54  def balance", "63  def trial_balance", "68  def of_document"]),
    ("where does LoadInvoice begin", "Go file, as a viewer with line numbers prints it", ["46 func (s *Store) LoadInvoice"]),
    ("which tests of the class are there", "TypeScript file",
     ['42 describe "InvoiceBook"', '43  it "refuses an invoice twice"', '49  it "sums open amounts"']),
    ("which exception does openOrder throw", "Java file", ["openOrder", "TooManyOrders"]),
    ("which tests failed, and how many passed", "Run of pytest",
     ["failed (2): tests/test_orders.py::test_refund_of_a_part, tests/test_taxes.py::test_tax_of_a_shipment",
      "2 failed, 212 passed in 14.21s"]),
    ("which test failed, and how many ran", "Run of unittest", ["failed (1): test_paid_invoices_are_closed", "Ran 11 tests"]),
    ("which test failed in which file", "Run of jest", ["failed (1): removes an item", "FAIL src/cart/cart.test.ts", "Tests:       1 failed, 63 passed, 64 total"]),
    ("which test failed in which package", "Run of go test", ["failed (1): TestLogin", "example.com/shop/auth"]),
    ("where does the build stop", "Run of make", ["src/ledger.c:112:17: error: 'struct entry' has no member named 'currency_code'",
     "Makefile:24: build/ledger.o"]),
    ("how many errors has the log, and how did the run end", "Server log", ["ERROR 11", "no customer 'C-20612'", "errors=11"]),
    ("how many rows and columns, and what is the highest price", "CSV file", ["47 lines, 9 columns", "price_per_kg 0,23 to 5,18", "34 POPP-10;Poppy seed"]),
    ("how many orders, with which keys and totals", "JSON list", ["[40 of {order_id, customer: {id, country}, total, paid}]", "total 0.0 to 292.5"]),
    ("what did the diff touch", "Diff", ["3 files, +3 -3", "src/auth/session.py (+1 -1)", "src/auth/cookies.py (+1 -1)", "tests/test_session.py (+1 -1)"]),
    ("which file is the largest", "Listing with sizes", ["largest report-2026-25.pdf 197975"]),
    ("how many files has which folder", "List of paths", ["30 entries", "checkout/src/orders/ (3): index.ts routes.ts schema.ts", "billing/src/reports/ (3)"]),
    ("where does the search form send to, and how many links are there", "HTML page", ["13 links", "/orders/search", "customer_id"]),
]  # fmt: skip


@pytest.mark.parametrize(("question", "title", "answers"), QUESTIONS, ids=[question for question, _, _ in QUESTIONS])
def test_the_digest_answers(question, title, answers):
    text = digest_of(title)
    assert [each for each in answers if each not in text] == []
    assert len(text) <= len(TEXTS[title]) / 2


def test_the_rows_of_a_table_are_counted():
    customers = (PROJECT / "data" / "customers.csv").read_text(encoding="utf-8")
    rows = customers.count("\n") - 1
    assert str(digest(customers).description).startswith(f"table, {len(customers):,} characters, {rows} rows")


def test_no_example_holds_a_fragment_of_a_line():
    for title in TEXTS:
        assert not re.search(r"\w…\w", digest_of(title)), title


def test_the_page_of_examples_is_up_to_date():
    """Write it again with `python tests/digest/pairs.py > docs/mechanisms/digests.md`."""
    kept = Path(__file__).parents[2] / "docs" / "mechanisms" / "digests.md"
    assert kept.read_text(encoding="utf-8") == page()
    assert len(TEXTS) >= 20
