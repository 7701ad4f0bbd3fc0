"""The twenty texts of `docs/mechanisms/digests.md`, and the page itself: `python tests/digest/pairs.py > docs/mechanisms/digests.md`."""

# ruff: noqa: E501 - lines of sample texts are as long as real ones
from __future__ import annotations

import json
from pathlib import Path
from unittest.mock import patch

from foveate.digest import digest

PROJECT = Path(__file__).parents[2] / "examples" / "sample_project"
BEGINNING = 12
"""Lines of a text that the page shows."""
WIDTH = 110
ROOM = 700

NAMES = ("orders", "invoices", "customers", "payments", "reports", "stock", "prices", "lots", "taxes", "routes")
INTRODUCTION = """# Digests: twenty examples

A model reads a digest instead of a long result. Each example shows the beginning of a text and its digest in at most
700 characters and half of its size, without a handle and without the extra `code`. [Digests](digest.md) explains how to
read one and how it is made.
"""


def _go() -> str:
    methods = "".join(
        f"""// Load{name} reads one row.
func (s *Store) Load{name}(ctx context.Context, id string) (*{name}, error) {{
	row := s.db.QueryRowContext(ctx, select{name}, id)
	var found {name}
	if err := row.Scan(&found.ID, &found.CreatedAt); err != nil {{
		return nil, fmt.Errorf("load {name.lower()} %s: %w", id, err)
	}}
	return &found, nil
}}

"""
        for name in ("User", "Order", "Invoice", "Session", "Token")
    )
    return f"""package store

import (
	"context"
	"database/sql"
	"fmt"
)

const maxOpenConns = 20

// Store reads and writes rows.
type Store struct {{
	db *sql.DB
}}

func Open(dsn string) (*Store, error) {{
	db, err := sql.Open("postgres", dsn)
	if err != nil {{
		return nil, err
	}}
	db.SetMaxOpenConns(maxOpenConns)
	return &Store{{db: db}}, nil
}}

{methods}"""


TYPESCRIPT = """import { readFile } from "node:fs/promises";
import { Ledger, type Entry } from "./ledger.js";

export const DEFAULT_CURRENCY = "EUR";

export interface Invoice {
  invoiceNumber: string;
  customerId: string;
  lines: InvoiceLine[];
}

/** The invoices of one year. */
export class InvoiceBook {
  private entries = new Map<string, Invoice>();

  constructor(private readonly ledger: Ledger) {}

  async load(path: string): Promise<void> {
    const text = await readFile(path, "utf8");
    for (const invoice of JSON.parse(text)) {
      this.entries.set(invoice.invoiceNumber, invoice);
    }
  }

  post(invoice: Invoice): Entry {
    if (this.entries.has(invoice.invoiceNumber)) {
      throw new Error(`posted twice: ${invoice.invoiceNumber}`);
    }
    this.entries.set(invoice.invoiceNumber, invoice);
    return this.ledger.addEntry(invoice.customerId, invoice.lines);
  }

  openAmounts(customerId: string): number[] {
    const found = [...this.entries.values()].filter((each) => each.customerId === customerId);
    return found.map((invoice) => totalOf(invoice) - this.ledger.paidFor(invoice.invoiceNumber));
  }
}

export const totalOf = (invoice: Invoice): number =>
  invoice.lines.reduce((sum, line) => sum + line.netAmount, 0);

describe("InvoiceBook", () => {
  it("refuses an invoice twice", () => {
    const book = new InvoiceBook(new Ledger());
    book.post(sampleInvoice);
    expect(() => book.post(sampleInvoice)).toThrow("posted twice");
  });

  it("sums open amounts", () => {
    const book = new InvoiceBook(new Ledger());
    expect(book.openAmounts("c-7")).toEqual([]);
  });
});
"""

RUST = """use std::collections::HashMap;
use std::time::Duration;

use crate::store::{Store, StoreError};

pub const MAX_RETRIES: u32 = 5;

/// Jobs that wait for a worker.
pub struct Queue<S: Store> {
    store: S,
    pending: HashMap<String, Job>,
}

#[derive(Debug, Clone)]
pub enum JobState {
    Waiting,
    Running { started_at: u64 },
    Failed { attempts: u32, reason: String },
}

impl<S: Store> Queue<S> {
    pub fn new(store: S) -> Self {
        Self { store, pending: HashMap::new() }
    }

    pub async fn push(&mut self, job: Job) -> Result<(), StoreError> {
        self.store.save_job(&job).await?;
        self.pending.insert(job.id.clone(), job);
        Ok(())
    }

    pub fn next_due(&self, now: u64) -> Option<&Job> {
        self.pending.values().filter(|job| job.run_at <= now).min_by_key(|job| job.run_at)
    }
}

fn backoff_for(attempt: u32) -> Duration {
    Duration::from_millis(2u64.pow(attempt.min(MAX_RETRIES)) * 100)
}
"""

JAVA = """package com.example.shop;

import java.time.Instant;
import java.util.List;

import com.example.shop.store.OrderStore;

/** Opens, cancels and ships orders. */
public class OrderService {
    private static final int MAX_OPEN_ORDERS = 20;
    private final OrderStore orderStore;
    private final Mailer mailer;

    public OrderService(OrderStore orderStore, Mailer mailer) {
        this.orderStore = orderStore;
        this.mailer = mailer;
    }

    @Transactional
    public Order openOrder(String customerId, List<Item> items) throws TooManyOrders {
        if (orderStore.countOpen(customerId) >= MAX_OPEN_ORDERS) {
            throw new TooManyOrders(customerId);
        }
        Order order = new Order(customerId, items, Instant.now());
        orderStore.save(order);
        mailer.sendConfirmation(order);
        return order;
    }

    public void cancelOrder(long orderId) {
        Order order = orderStore.load(orderId);
        order.setStatus(Status.CANCELLED);
        orderStore.save(order);
    }

    public List<Order> ordersOf(String customerId) {
        return orderStore.findByCustomer(customerId);
    }
}
"""

PYTEST = (
    "============================= test session starts ==============================\nplatform linux -- Python 3.12.4, pytest-8.3.2\n"
    "rootdir: /srv/shop\ncollected 214 items\n\n"
    + "".join(f"tests/test_{name}.py {'.' * 18}{' ' * 30}[{10 * n + 9:3}%]\n" for n, name in enumerate(NAMES))
    + """
=================================== FAILURES ===================================
_____________________________ test_refund_of_a_part ____________________________

    def test_refund_of_a_part():
        order = sample_order(total=Money(12_000))
        order.refund(Money(2_000))
>       assert order.amount_due == Money(10_000)
E       AssertionError: assert Money(12000) == Money(10000)

tests/test_orders.py:88: AssertionError
____________________________ test_tax_of_a_shipment ____________________________

    def test_tax_of_a_shipment():
>       assert tax_for(shipment, country="AT").rate == 20
E       KeyError: 'AT'

src/shop/taxes.py:41: KeyError
=========================== short test summary info ============================
FAILED tests/test_orders.py::test_refund_of_a_part - AssertionError: assert Money(12000) == Money(10000)
FAILED tests/test_taxes.py::test_tax_of_a_shipment - KeyError: 'AT'
======================== 2 failed, 212 passed in 14.21s ========================
"""
)

UNITTEST = (
    "".join(f"test_{name}_are_read (tests.test_{name}.ReadTests.test_{name}_are_read) ... ok\n" for name in NAMES)
    + """test_paid_invoices_are_closed (tests.test_payments.CloseTests.test_paid_invoices_are_closed) ... FAIL

======================================================================
FAIL: test_paid_invoices_are_closed (tests.test_payments.CloseTests.test_paid_invoices_are_closed)
----------------------------------------------------------------------
Traceback (most recent call last):
  File "/srv/shop/tests/test_payments.py", line 52, in test_paid_invoices_are_closed
    self.assertTrue(invoice.is_closed)
AssertionError: False is not true

----------------------------------------------------------------------
Ran 11 tests in 0.412s

FAILED (failures=1)
"""
)

JEST = (
    "".join(f"PASS src/{name}/{name}.test.ts\n" for name in NAMES)
    + """FAIL src/cart/cart.test.ts
  Cart
    ✓ adds an item (4 ms)
    ✕ removes an item (9 ms)
    ✓ counts items (1 ms)

  ● Cart › removes an item

    expect(received).toBe(expected) // Object.is equality

    Expected: 1
    Received: 2

      at Object.<anonymous> (src/cart/cart.test.ts:31:24)

Test Suites: 1 failed, 10 passed, 11 total
Tests:       1 failed, 63 passed, 64 total
Snapshots:   0 total
Time:        3.914 s
"""
)

GO_TEST = (
    "".join(f"=== RUN   Test{name.title()}\n--- PASS: Test{name.title()} (0.0{n}s)\n" for n, name in enumerate(NAMES))
    + """=== RUN   TestLogin
    login_test.go:48: cookie session_id is not set
--- FAIL: TestLogin (0.02s)
FAIL
FAIL	example.com/shop/auth	0.412s
ok  	example.com/shop/store	1.204s
FAIL
"""
)

BUILD = (
    "".join(f"gcc -O2 -Wall -Iinclude -c src/{name}.c -o build/{name}.o\n" for name in NAMES)
    + """src/ledger.c: In function 'ledger_post':
src/ledger.c:112:17: error: 'struct entry' has no member named 'currency_code'
src/ledger.c:140:9: warning: unused variable 'is_posted' [-Wunused-variable]
make: *** [Makefile:24: build/ledger.o] Error 1
"""
)

MARKDOWN_TABLE = "| Setting | Default | Unit | Meaning |\n|---|---|---|---|\n" + "".join(
    f"| `cache_{name}` | {64 * (n + 1)} | entries | how many {name} stay in memory before the oldest is dropped |\n"
    for n, name in enumerate(NAMES)
)

JSON_ROWS = json.dumps(
    [
        {
            "order_id": f"ord_{n}",
            "customer": {"id": f"cus_{n % 9}", "country": "DE"},
            "total": n * 7.5,
            "paid": n % 3 > 0,
        }
        for n in range(40)
    ]
)

JSON_NESTED = json.dumps(
    {
        "name": "shop",
        "version": "2.4.0",
        "scripts": {"build": "tsc -p tsconfig.json", "test": "vitest run", "lint": "eslint src --max-warnings 0"},
        "dependencies": {f"@shop/{name}": f"^2.{n}.0" for n, name in enumerate(NAMES)},
        "engines": {"node": ">=20"},
        "files": [f"dist/{name}.js" for name in NAMES],
    },
    indent=2,
)


def _change(path: str, line: int, place: str, old: str, new: str) -> str:
    context = "".join([f" unchanged line {n} of {path}\n" for n in range(4)])
    return (
        f"diff --git a/{path} b/{path}\nindex 1a2b3c4..5d6e7f8 100644\n--- a/{path}\n+++ b/{path}\n"
        f"@@ -{line},9 +{line},9 @@ {place}\n{context}-{old}\n+{new}\n{context}"
    )


DIFF = (
    _change(
        "src/auth/session.py", 48, "def log_in(user):", "    cookie = None", "    cookie = make_cookie(user.session_id)"
    )
    + _change("src/auth/cookies.py", 12, "COOKIE_NAME", "MAX_AGE = 0", "MAX_AGE = 14 * 86_400")
    + _change(
        "tests/test_session.py", 101, "def test_log_in():", "    assert cookie is None", "    assert cookie.max_age > 0"
    )
)

LS = "total 4820\ndrwxr-xr-x  4 me staff     128 Mar  1 09:00 archive\n" + "".join(
    f"-rw-r--r--  1 me staff {(n * 7919) % 9_000_000:8} Mar {n:2} 10:00 report-2026-{n:02}.pdf\n" for n in range(1, 26)
)

FIND = "".join(
    f"./services/{service}/src/{name}/{part}.ts\n"
    for service in ("checkout", "billing")
    for name in NAMES[:5]
    for part in ("index", "routes", "schema")
)

GREP = "".join(f"services/tool_{n}/main.go:{n + 10}:\tsrv := NewServer(config{n})\n" for n in range(6)) + "".join(
    f"src/app/server.go:{line}:{text}\n"
    for line, text in (
        (12, "func NewServer(cfg Config) *Server {"),
        (80, "\ts := NewServer(cfg)"),
        (91, "\ts.ListenAndServe(addr)"),
    )
)

HTML = (
    "<!doctype html>\n<html><head><title>Orders of March</title><style>td { padding: 2px }</style></head><body>\n<h1>Orders</h1>\n"
    '<form action="/orders/search"><input name="customer_id" placeholder="Customer"><button>Search</button></form>\n<h2>Open</h2>\n'
    + "".join(
        f'<div class="row"><a href="/orders/ord_{n}">Order {n}</a> <span class="muted">open since {n} days</span></div>\n'
        for n in range(12)
    )
    + "<h2>Help</h2>\n<p>Ask <a href='mailto:office@example.com'>the office</a> about refunds.</p>\n</body></html>\n"
)

PROSE = """# Moving the shop to the new queue

The old queue loses jobs when a worker stops in the middle of a job. This note describes the move to PostgreSQL, which takes about two days.

## Preparation

Create the table with `migrations/0042_queue.sql`. It has one row for each job. Nobody has to stop the shop for this step, since the table is new
and nothing reads it yet. We tried the step on the staging database, where it took less than a second.

## Switching over

Set QUEUE_BACKEND=postgres in config/shop.toml and restart the workers one after the other. Each worker finishes its job before it stops.
The switch can be taken back at any time, because both queues are read until the old one is empty.

## Afterwards

Remove the old queue with scripts/drop_redis.sh after a week. Watch the dashboard `queue-latency` until then.
"""

TEXTS: dict[str, str] = {
    "Python file": (PROJECT / "granary" / "ledger.py").read_text(encoding="utf-8"),
    "Go file, as a viewer with line numbers prints it": "".join(
        f"{number:6}\t{row}\n" for number, row in enumerate(_go().split("\n"), 1)
    ),
    "TypeScript file": TYPESCRIPT,
    "Rust file": RUST,
    "Java file": JAVA,
    "Run of pytest": PYTEST,
    "Run of unittest": UNITTEST,
    "Run of jest": JEST,
    "Run of go test": GO_TEST,
    "Run of make": BUILD,
    "Server log": (PROJECT / "logs" / "nightly-2025-03-14.log").read_text(encoding="utf-8"),
    "CSV file": (PROJECT / "data" / "products.csv").read_text(encoding="utf-8"),
    "Markdown table": MARKDOWN_TABLE,
    "JSON list": JSON_ROWS,
    "JSON object": JSON_NESTED,
    "Diff": DIFF,
    "Listing with sizes": LS,
    "List of paths": FIND,
    "Matches of a search": GREP,
    "HTML page": HTML,
    "Markdown text": PROSE,
}


def digest_of(title: str) -> str:
    """Return the digest of one of the texts, in at most half of its size, made without the extra `code`."""
    text = TEXTS[title]
    with patch("foveate.digest.code.outline_by_grammar", return_value=None):
        return digest(text, min(ROOM, len(text) // 2)).text


def page() -> str:
    """Return the page `docs/mechanisms/digests.md`."""
    parts = [INTRODUCTION]
    for title, text in TEXTS.items():
        rows = text.rstrip("\n").split("\n")
        shown = [row if len(row) <= WIDTH else f"{row[:WIDTH]} …" for row in rows[:BEGINNING]]
        if len(rows) > BEGINNING:
            shown.append(f"… {len(rows) - BEGINNING} more lines")
        short = digest_of(title)
        parts.append(f"## {title}\n\n{len(text):,} characters:\n\n````\n{chr(10).join(shown)}\n````\n")
        parts.append(f"In {len(short):,} characters:\n\n````\n{short}\n````\n")
    return "\n".join(parts)


if __name__ == "__main__":
    print(page(), end="")
