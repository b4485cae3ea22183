"""Turns a title into the last part of an address."""


def slug(title):
    """Hello, World! becomes hello-world."""
    return title.lower().replace(" ", "-")
