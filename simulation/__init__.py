"""Worlds with known truth and the study that decal's statistics are judged by; no part of the package."""
