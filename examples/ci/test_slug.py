import unittest

from slug import slug


class Slug(unittest.TestCase):
    def test_words(self):
        self.assertEqual(slug("Hello World"), "hello-world")

    def test_signs(self):
        self.assertEqual(slug("Hello, World!"), "hello-world")

    def test_spaces_around(self):
        self.assertEqual(slug("  a  title "), "a-title")

    def test_accents(self):
        self.assertEqual(slug("Crème Brûlée"), "creme-brulee")


if __name__ == "__main__":
    unittest.main()
