import unittest

from stats import mean


class Mean(unittest.TestCase):
    def test_some_numbers(self):
        self.assertEqual(mean([1, 2, 6]), 3)

    def test_no_numbers(self):
        self.assertEqual(mean([]), 0)
