"""Outlines of source code: declarations with their line numbers, in every language, with and without a parser."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest

from foveate.core.caches import clear_caches
from foveate.digest import code, digest
from foveate.digest.code import outline_by_forms
from foveate.digest.grammars import outline_by_grammar
from foveate.digest.languages import LANGUAGES, detect_language
from foveate.digest.python_code import outline_python

SAMPLES: dict[str, tuple[str, list[str]]] = {
    "python": (
        '''import json
from shop.orders import Order

LIMIT = 20


class Book:
    title: str

    def post(
        self, order: Order, *, twice: bool = False
    ) -> None:
        """Post."""
        self.orders.append(order)


async def load(path):
    return json.loads(path)
''',
        ["class Book", "def post( self, order: Order, *, twice: bool = False ) -> None", "async def load(path)"],
    ),
    "go": (
        """package store

import (
	"context"
	"database/sql"
)

const Limit = 3

type Store struct {
	db *sql.DB
}

func (s *Store) Load(ctx context.Context, id string) (*User, error) {
	user := &User{}
	return user, nil
}
""",
        ["type Store struct", "func (s *Store) Load(ctx context.Context, id string) (*User, error)"],
    ),
    "typescript": (
        """import { readFile } from "node:fs";

export const LIMIT = 5;

export class Book {
  async load(path: string): Promise<void> {
    const text = readFile(path);
    if (text) {
      this.entries.set(path, text);
    }
  }
}

export const total = (book: Book): number => book.sum();

describe("Book", () => {
  it("loads", () => {
    expect(1);
  });
});
""",
        ["export class Book", "async load(path: string): Promise<void>", 'describe "Book"', 'it "loads"'],
    ),
    "rust": (
        """use std::fmt;

pub const LIMIT: u32 = 5;

pub struct Queue {
    jobs: Vec<Job>,
}

impl Queue {
    pub fn push(&mut self, job: Job) -> Result<(), Full> {
        self.jobs.push(job);
        Ok(())
    }
}
""",
        ["pub struct Queue", "impl Queue", "pub fn push(&mut self, job: Job) -> Result<(), Full>"],
    ),
    "java": (
        """package shop;

import java.util.List;

public class Orders {
    private final Store store;

    public List<Order> open(String customer) {
        return store.find(customer);
    }
}
""",
        ["public class Orders", "public List<Order> open(String customer)"],
    ),
    "csharp": (
        """using System.Linq;

namespace Shop
{
    public class Orders
    {
        public string Name { get; set; }

        public async Task<Order> Load(int id)
        {
            var order = await store.Find(id);
            return order;
        }
    }
}
""",
        ["public class Orders", "public async Task<Order> Load(int id)"],
    ),
    "kotlin": (
        """package shop

import java.time.Instant

data class Order(val id: Long)

class Orders(private val store: Store) {
    fun open(customer: String): List<Order> {
        val found = store.find(customer)
        return found
    }
}
""",
        ["data class Order", "class Orders", "fun open(customer: String): List<Order>"],
    ),
    "swift": (
        """import Foundation

struct Order {
    let id: Int
}

extension Order {
    func total(of lines: [Line]) -> Double {
        guard let first = lines.first else { return 0 }
        return first.amount
    }
}
""",
        ["struct Order", "extension Order", "func total(of lines: [Line]) -> Double"],
    ),
    "c": (
        """#include <stdio.h>

#define LIMIT 20

struct order {
    int id;
};

static int load_order(const char *path, struct order *out) {
    FILE *file = fopen(path, "r");
    if (file == NULL) {
        return -1;
    }
    return out->id;
}
""",
        ["struct order", "static int load_order(const char *path, struct order *out)"],
    ),
    "ruby": (
        """require 'json'

module Shop
  class Orders
    LIMIT = 5

    def open(customer)
      @orders = store.each do |order|
        order.open?
      end
    end
  end
end
""",
        ["module Shop", "class Orders", "def open(customer)"],
    ),
    "php": (
        """<?php
namespace Shop;

use Shop\\Store\\Orders;

class Book
{
    public function load(string $path): array
    {
        $text = $this->orders->read($path);
        return json_decode($text);
    }
}
""",
        ["class Book", "public function load(string $path): array"],
    ),
    "shell": (
        """#!/bin/bash
set -eu
TARGET_DIR=/srv/app

deploy_app() {
  if [ -z "$1" ]; then
    echo "no version"
    exit 1
  fi
}

deploy_app "$@"
""",
        ["deploy_app()"],
    ),
    "sql": (
        """CREATE TABLE orders (
  id bigint PRIMARY KEY,
  customer_id uuid NOT NULL
);

CREATE INDEX orders_by_customer ON orders (customer_id);
SELECT id FROM orders
WHERE customer_id = 1;
""",
        ["CREATE TABLE orders", "CREATE INDEX orders_by_customer ON orders (customer_id);"],
    ),
    "css": (
        """.order-list {
  display: flex;
  color: red;
}

@media (max-width: 600px) {
  .order-list {
    display: block;
  }
}
""",
        [".order-list", "@media (max-width: 600px)"],
    ),
    "lua": (
        """local json = require('json')

local function load_order(path)
  if path ~= nil then
    return json.decode(path)
  end
end
""",
        ["local function load_order(path)"],
    ),
}


@pytest.mark.parametrize("name", SAMPLES)
def test_a_language_is_detected(name):
    found = detect_language(SAMPLES[name][0].split("\n"))
    assert found is not None
    assert found.name == name


@pytest.mark.parametrize("name", SAMPLES)
def test_forms_of_lines_give_an_outline(name):
    text, wanted = SAMPLES[name]
    rows = text.split("\n")
    language = next(each for each in LANGUAGES if each.name == name)
    found = outline_by_forms(rows, language)
    texts = [each.text for each in found]
    assert [each for each in wanted if not any(text.startswith(each) for text in texts)] == []
    for each in found:
        first = each.text.replace('"', " ").split()[0]
        assert each.rank == 1 or first in rows[each.row], each


@pytest.mark.parametrize("name", [name for name in SAMPLES if name not in ("sql", "css", "lua", "python")])
def test_a_grammar_gives_the_same_outline(name):
    pytest.importorskip("tree_sitter", reason="tree-sitter is not installed (the extra `code`)")
    text, wanted = SAMPLES[name]
    found = outline_by_grammar(text.split("\n"), name)
    if found is None:
        pytest.skip(f"the grammar of {name} is not installed")
    texts = [each.text for each in found]
    assert [each for each in wanted if not any(text.startswith(each) for text in texts)] == []


def test_python_is_outlined_by_its_parser():
    text, wanted = SAMPLES["python"]
    found = outline_python(text.split("\n"))
    assert found is not None
    assert [each.text for each in found if each.rank > 2] == [
        wanted[0], "def post( self, order: Order, *, twice: bool = False ) -> None", wanted[2]
    ]  # fmt: skip
    assert [(each.text, each.row) for each in found if each.rank == 2] == [("LIMIT = 20", 3), ("title: str", 7)]
    assert [each.text for each in found if each.rank == 1] == ["json", "shop.orders: Order"]


def test_a_stretch_of_python_is_outlined_by_forms():
    """Tools cut files; a cut file does not parse."""
    rows = SAMPLES["python"][0].split("\n")[8:]
    assert outline_python(rows) is None
    assert "post" in digest("\n".join(rows) * 3, 300).text


def test_unknown_escapes_in_python_cause_no_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert outline_python(['PATTERN = "\\d+ \\\\"', "WORDS = r'\\w\\''"]) is not None


def test_line_numbers_are_those_of_the_file():
    rows = SAMPLES["python"][0].split("\n")
    viewed = "".join([f"{number:6}→{row}\n" for number, row in enumerate(rows * 3, 301)])
    text = digest(viewed, 600, "m1").text
    assert "file lines 301-" in text.split("\n")[0]
    assert "\n307 class Book\n" in text


def test_a_digest_without_grammars_differs_in_details_only(monkeypatch):
    text = SAMPLES["typescript"][0] * 2
    whole = digest(text, 500).text
    clear_caches()
    monkeypatch.setattr(code, "outline_by_grammar", lambda rows, language: None)
    without = digest(text, 500).text
    clear_caches()
    for line in ("5 export class Book", '16 describe "Book"', '17  it "loads"'):
        assert line in whole
        assert line in without


def test_every_class_and_function_of_a_module_is_in_its_digest():
    """Each file of the sample project is digested to a quarter; its classes and functions stay, with their lines."""
    missing = []
    for path in sorted((Path(__file__).parents[2] / "examples" / "sample_project" / "granary").glob("*.py")):
        text = path.read_text(encoding="utf-8")
        if len(text) < 2_000:
            continue
        short = digest(text, max(600, len(text) // 4)).text
        for number, row in enumerate(text.split("\n"), 1):
            if row.startswith(("class ", "def ")):
                name = row.split("(")[0].rstrip(":")
                if f"{number} {name}" not in short:
                    missing.append(f"{path.name}:{number} {name}")
    assert missing == []
