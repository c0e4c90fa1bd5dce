"""Speed and memory as ratios: `python -m benchmarks.run`; no part of the package."""
