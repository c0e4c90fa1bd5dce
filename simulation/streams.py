"""Real streams: which recalibrator wins where, and what is advised. `python -m simulation.streams FOLDER` prints it.

FOLDER holds Parquet files in the order of time, with a label y, a time t and frozen scores p_NAME.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

THRESHOLDS = (0.3, 0.5)
METHODS = ("as-it-is", "frozen-isotonic", "rolling-isotonic", "fading-isotonic", "online-platt", "running-mean")
"""Those without random numbers that the advice rests on."""


def stream_table(folder: Path) -> Iterator[str]:
    """Gains over the score as it is, per 1,000 decisions, and the advice."""
    names = " | ".join(method.replace("-", " ") for method in METHODS[1:])
    yield f"| stream | score | t* | rows | alarm after row | {names} | advice | clear since row |"
    yield "|---" * (7 + len(METHODS)) + "|"
    for path in sorted(folder.glob("*.parquet")):
        for score in _scores(path):
            for threshold in THRESHOLDS:
                yield _row(path, score, threshold)


def _scores(path: Path) -> list[str]:
    import pyarrow.parquet as pq

    return [name for name in pq.read_schema(path).names if name.startswith("p_")]


def _row(path: Path, score: str, threshold: float) -> str:
    command = [sys.executable, "-m", "decal_cli", "online", str(path), "-s", score, "-y", "y", "--time", "t"]
    command += ["--threshold", str(threshold), "--missing", "drop", "--format", "json"]
    command += [part for method in METHODS for part in ("--method", method)]
    replayed = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    gains = {each["method"]: each for each in replayed["methods"][1:]}
    alarm, advice = replayed["alarm"], replayed["advice"]
    cells = (
        path.stem,
        score.removeprefix("p_"),
        f"{threshold:g}",
        f"{replayed['rows']:,}",
        "none" if alarm is None else f"{alarm['row']:,}",
        *(_gain(gains[method]) for method in METHODS[1:]),
        advice["action"] + (f" ({advice['method']})" if advice["method"] else ""),
        "" if advice["since"] is None else f"{advice['since']:,}",
    )
    return f"| {' | '.join(cells)} |"


def _gain(method: dict[str, object]) -> str:
    """Per 1,000 decisions; bold where its confidence sequence is above 0."""
    gain, interval = method["gain"], method["interval"]
    assert isinstance(gain, float) and isinstance(interval, list)
    return f"**{1000 * gain:.1f}**" if interval[0] > 0 else f"{1000 * gain:.1f}"


if __name__ == "__main__":
    print("\n".join(stream_table(Path(sys.argv[1]))))
