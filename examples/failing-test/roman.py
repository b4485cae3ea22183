"""Roman numerals from 1 to 3999."""

LETTERS = [
    (1000, "M"), (900, "CM"), (500, "D"), (400, "CD"), (100, "C"), (90, "XC"),
    (50, "L"), (40, "XL"), (10, "X"), (9, "IX"), (5, "V"), (4, "IV"), (1, "I"),
]


def to_roman(number):
    """1994 is MCMXCIV."""
    text = ""
    for value, letters in LETTERS:
        if number >= value:
            text += letters
            number -= value
    return text


def from_roman(text):
    """MCMXCIV is 1994."""
    values = dict((letters, value) for value, letters in LETTERS)
    return sum(values[letter] for letter in text)
