import unittest

from roman import from_roman, to_roman


class Roman(unittest.TestCase):
    def test_one_letter(self):
        self.assertEqual(to_roman(5), "V")

    def test_a_letter_again(self):
        self.assertEqual(to_roman(3), "III")

    def test_a_year(self):
        self.assertEqual(to_roman(1994), "MCMXCIV")

    def test_back(self):
        self.assertEqual(from_roman("XVI"), 16)

    def test_back_from_a_smaller_letter_first(self):
        self.assertEqual(from_roman("XIV"), 14)

    def test_there_and_back(self):
        for number in range(1, 4000):
            self.assertEqual(from_roman(to_roman(number)), number)


if __name__ == "__main__":
    unittest.main()
