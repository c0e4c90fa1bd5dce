"""decal: what acting on a classifier's scores costs, what recalibration wins back, and what needs post-training."""

__version__ = "0.1.0"
