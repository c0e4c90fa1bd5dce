"""What intervals are for, in the words that several metrics share."""

from __future__ import annotations

POPULATION = "the population's value"
_BIASED = "noise alone makes the value too large, so the truth lies in the lower part more often than in the upper"
POPULATION_BELOW = f"{POPULATION}; {_BIASED}"
_EDGES = "the bins that these rows have, their edges held fixed"
OF_BINS = f"{POPULATION} for {_EDGES}"
OF_BINS_BELOW = f"{OF_BINS}; {_BIASED}"
FEW_ROWS = "no interval for exact levels that hold few rows: there the value is noise and estimates nothing"
OF_LEVELS_BELOW = f"{POPULATION} for the levels used, these exact ones or {_EDGES}; {_BIASED}; {FEW_ROWS}"
LEARNED = "the mean gain, in the population, of the rules that the folds learned"
JUMPS = "nothing: where a supremum is attained jumps between far-apart thresholds that are almost as bad"
