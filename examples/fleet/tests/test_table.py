import unittest

from table import table


class Table(unittest.TestCase):
    def test_names_to_the_left_and_numbers_to_the_right(self):
        rows = [("mean", 3), ("median", 12.5)]
        self.assertEqual(table(rows), "mean    3.00\nmedian 12.50\n")

    def test_no_rows(self):
        self.assertEqual(table([]), "")
