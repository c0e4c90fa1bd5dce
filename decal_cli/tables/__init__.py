"""Sufficient statistics of rows: tables and pair tables, the isotonic fit, and how they are resampled."""
