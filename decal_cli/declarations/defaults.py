"""The defaults, each named once: help, settings and the API read them here."""

CONFIDENCE = 0.95
"""Level of the intervals."""
SEED = 0
"""Seed of folds and resamples."""
SWEEP_THRESHOLDS = "0.01:0.99:0.01"
"""Thresholds of a sweep and of the curves of a report."""
STUDY_THRESHOLDS = "0.01,0.025,0.05,0.1,0.25,0.5,0.75,0.9,0.95,0.975,0.99"
"""Thresholds at which a study compares estimates with gains: those of Perez-Lebel et al. 2025, appendix C.3."""
N_STUDY_SEEDS = 5
"""How often a study halves every file."""
STUDY_FOLDER = "decal-study"
"""The folder that a study writes to."""
WARM_UP = 1000
"""First rows of a stream, from which a frozen recalibration is learned."""
