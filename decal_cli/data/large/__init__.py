"""Rows that are too many to hold: counted in batches or by an engine, read as counts, or sampled."""
