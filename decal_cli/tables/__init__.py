"""Rows, and tables that count them: distinct scores, pairs of scores, the isotonic fit, resampling."""
