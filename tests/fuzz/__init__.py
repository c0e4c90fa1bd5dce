"""Hostile, broken and extreme input in great numbers: `make fuzz`, and a slice of each in the tests."""
