"""Forecasters that learn while they predict, and statistics that may be looked at after every row."""
