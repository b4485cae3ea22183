import unittest

from stats import median


class Median(unittest.TestCase):
    def test_an_odd_count(self):
        self.assertEqual(median([9, 1, 4]), 4)

    def test_an_even_count(self):
        self.assertEqual(median([9, 1, 4, 6]), 5)

    def test_no_numbers(self):
        self.assertEqual(median([]), 0)
