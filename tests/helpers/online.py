"""Online methods to test: every declared one, with small windows too, and inside bins of the score."""

from decal_cli.sequential import ONLINE

SMALL = ["frozen-isotonic(warm_up=50)", "rolling-isotonic(window=90)", "rolling-isotonic(window=7)"]
SMALL += ["fading-isotonic(half_life=20)", "fading-isotonic(half_life=3)"]
IN_BINS = ["rolling-isotonic(window=20,bins=3)", "online-platt(bins=3)", "hedge(bins=4)", "ftpl(bins=2)"]
IN_BINS += ["cdl-algorithm(bins=3)", "almost-one-step-ahead(bins=3)"]
ONLINE_METHODS = [*ONLINE, *SMALL, *IN_BINS]
