import unittest
from datetime import date

from granary.errors import QueryError
from granary.money import Money
from granary.query import compile_filter
from granary.query.lexer import tokens
from granary.query.parser import All, AnyOf, Compare, Not, parse

ROWS = [
    {"number": "INV-2025-00311", "customer": "C-20418", "total": Money(128_460), "status": "open", "due": date(2025, 4, 14)},
    {"number": "INV-2025-00312", "customer": "C-20077", "total": Money(4_975), "status": "settled", "due": date(2025, 3, 14)},
    {"number": "INV-2025-00313", "customer": "C-20433", "total": Money(50_000), "status": "open", "due": date(2025, 4, 30)},
]


def found(text):
    wanted = compile_filter(text)
    return [row["number"][-3:] for row in ROWS if wanted(row)]


class LexerTest(unittest.TestCase):
    def kinds(self, text):
        return [(token.kind, token.value) for token in tokens(text)][:-1]

    def test_words_and_strings(self):
        self.assertEqual(self.kinds('name LIKE "Back%"'), [("name", "name"), ("keyword", "like"), ("string", "Back%")])

    def test_a_quote_inside_a_string(self):
        self.assertEqual(self.kinds(r'"say \"yes\""'), [("string", 'say "yes"')])

    def test_two_character_symbols(self):
        self.assertEqual(self.kinds("a>=1"), [("name", "a"), ("symbol", ">="), ("number", "1")])
        self.assertEqual(self.kinds("a<=-2.5"), [("name", "a"), ("symbol", "<="), ("number", "-2.5")])

    def test_dates(self):
        self.assertEqual(self.kinds("due < 2025-04-01"), [("name", "due"), ("symbol", "<"), ("date", "2025-04-01")])

    def test_an_open_string(self):
        with self.assertRaises(QueryError) as caught:
            tokens('name = "Back')
        self.assertEqual(caught.exception.position, 7)


class ParserTest(unittest.TestCase):
    def test_and_binds_tighter_than_or(self):
        a, b, c = Compare("a", "=", "x"), Compare("b", "=", "y"), Compare("c", "=", "z")
        self.assertEqual(parse('a = "x" or b = "y" and c = "z"'), AnyOf((a, All((b, c)))))

    def test_not(self):
        self.assertEqual(parse('not a is empty'), Not(Compare("a", "empty", None)))
        self.assertEqual(parse('a is not empty'), Not(Compare("a", "empty", None)))

    def test_mistakes_point_at_the_place(self):
        for text, position in (("total >", 7), ("total 5", 6), ('(a = "x"', 8), ("a ~ 1", 2), ("a = 1 b = 2", 6)):
            with self.subTest(text=text), self.assertRaises(QueryError) as caught:
                parse(text)
            self.assertEqual(caught.exception.position, position)


class FilterTest(unittest.TestCase):
    def test_money(self):
        self.assertEqual(found("total > 500"), ["311"])
        self.assertEqual(found("total >= 500"), ["311", "313"])

    def test_text_and_lists(self):
        self.assertEqual(found('status = "open" and customer != "C-20418"'), ["313"])
        self.assertEqual(found('customer in ("C-20077", "C-20418")'), ["311", "312"])
        self.assertEqual(found('number like "inv-2025-%2"'), ["312"])

    def test_dates(self):
        self.assertEqual(found("due > 2025-04-13"), ["311", "313"])

    def test_a_missing_field_is_empty(self):
        self.assertEqual(found("paid > 1 or paid = 1 or paid < 1"), [])
        self.assertEqual(len(found("paid is empty")), 3)
