import unittest
from datetime import date

from granary.errors import Unbalanced
from granary.ledger import Entry, Ledger, Posting, entry_for_invoice, entry_for_payment
from granary.money import Money, total_of
from granary.payments import Match, Payment
from tests import sample
from tests.sample import BAKERY, BRAN, TODAY, WHEAT_550


def invoice():
    order = sample.shipped(lines=((WHEAT_550, 20), (BRAN, 4)))
    return sample.invoicing().invoice(order, BAKERY, sample.catalog(), TODAY)


class LedgerTest(unittest.TestCase):
    def test_an_invoice_balances(self):
        made = invoice()
        entry = Ledger().post(entry_for_invoice(made))
        self.assertEqual([posting.account for posting in entry.postings], ["1400", "8300", "8310", "1776"])
        self.assertEqual(total_of(posting.amount for posting in entry.postings), Money(0))

    def test_a_payment_clears_receivables(self):
        made, ledger = invoice(), Ledger()
        ledger.post(entry_for_invoice(made))
        payment = Payment(date(2025, 4, 1), made.total, BAKERY.name, "")
        ledger.post(entry_for_payment(payment, Match(made.number, made.total, "reference")))
        self.assertEqual(ledger.balance("1400"), Money(0))
        self.assertEqual(ledger.balance("1400", until=TODAY), made.total)
        self.assertEqual(len(ledger.of_document(made.number)), 2)

    def test_what_does_not_balance_is_refused(self):
        with self.assertRaises(Unbalanced):
            Ledger().post(Entry(TODAY, "wrong", (Posting("1200", Money(1)),)))

    def test_unknown_accounts_are_refused(self):
        with self.assertRaises(Unbalanced):
            Ledger().post(Entry(TODAY, "wrong", (Posting("9999", Money(1)), Posting("1200", Money(-1)))))

    def test_trial_balance_adds_up(self):
        ledger = Ledger()
        ledger.post(entry_for_invoice(invoice()))
        self.assertEqual(total_of(balance for _, _, balance in ledger.trial_balance()), Money(0))
