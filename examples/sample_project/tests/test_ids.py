import unittest

from granary import ids


class NumberTest(unittest.TestCase):
    def test_kinds(self):
        self.assertEqual(ids.kind_of("INV-2025-00317"), "invoice")
        self.assertEqual(ids.kind_of("SO-88231"), "order")
        self.assertIsNone(ids.kind_of("SO-882"))

    def test_sequences_start_again_each_year(self):
        numbers = ids.Sequence("INV", {2024: 1290})
        self.assertEqual(numbers.next(2024), "INV-2024-01291")
        self.assertEqual(numbers.next(2025), "INV-2025-00001")
        self.assertEqual(numbers.peek(2025), "INV-2025-00002")


class BarcodeTest(unittest.TestCase):
    def test_check_digit(self):
        self.assertEqual(ids.ean13_check_digit("400638133393"), "1")
        self.assertTrue(ids.is_ean13("4006381333931"))
        self.assertFalse(ids.is_ean13("4006381333932"))

    def test_too_short(self):
        with self.assertRaises(ValueError):
            ids.ean13_check_digit("4006")


class ReferenceTest(unittest.TestCase):
    def test_there_and_back(self):
        reference = ids.creditor_reference("INV-2025-00317")
        self.assertTrue(ids.is_creditor_reference(reference))
        self.assertEqual(ids.invoice_of_reference(reference), "INV-2025-00317")

    def test_blanks_do_not_matter(self):
        self.assertTrue(ids.is_creditor_reference("RF18 5390 0754 7034"))

    def test_one_wrong_digit_is_found(self):
        reference = ids.creditor_reference("INV-2025-00317")
        self.assertIsNone(ids.invoice_of_reference(reference[:-1] + "8"))
