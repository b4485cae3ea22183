"""Statistics of a list of numbers."""
