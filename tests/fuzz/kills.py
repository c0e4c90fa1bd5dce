"""Real runs of every command that writes, ended by a signal at a random moment.

    python -m tests.fuzz.kills --runs 500

An output is the old one or the new one, never half of one. A run ends with its own exit code; with 130 where it was
asked to end and said so; or by the signal itself, before it has begun to write. What SIGKILL leaves beside an output
is taken away by the next run.
"""

from __future__ import annotations

import argparse
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from decal_cli.errors import Exit
from tests.helpers.command import DECAL, FIXTURES

ROWS = str(FIXTURES / "fox_news.parquet")
NAMED = ("-s", "p_hatesonar", "-y", "y", "--missing", "drop")
TASK = (*NAMED, "-t", "0.3")
OLD = b"old"
LINES: dict[str, tuple[str, ...]] = {
    "evaluate": ("evaluate", ROWS, *TASK, "-o", "out.json"),
    "recommend": ("recommend", ROWS, *TASK, "--features", "x0*", "-o", "out.md"),
    "gate": ("gate", ROWS, *TASK, "-r", "upper(brier)<=0.4", "-o", "out.xml", "-f", "junit"),
    "sweep": ("sweep", ROWS, *NAMED, "--thresholds", "0.1:0.9:0.1", "-o", "out.csv"),
    "plot": ("sweep", ROWS, *NAMED, "--thresholds", "0.1:0.9:0.2", "--no-intervals", "--plot", "out.png"),
    "compare": (
        "compare",
        ROWS,
        "-s",
        "p_hatesonar",
        "-s",
        "p_mlp_hateval",
        "-y",
        "y",
        "--missing",
        "drop",
        "-o",
        "out.html",
    ),
    "splice": ("compare", ROWS, *NAMED, "-s", "p_mlp_hateval", "--force", "--write-splice", "out.csv"),
    "report": ("report", ROWS, *TASK, "-o", "out.html"),
    "fit": ("fit", "isotonic", ROWS, *TASK, "--force", "-o", "out.json"),
    "apply": ("apply", "model.json", "rows.csv", "--force", "-o", "out.csv"),
}
SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
"""Random moments come from here: half of them lie in the last tenth of a run, where it writes."""


def started(line: tuple[str, ...], folder: Path) -> subprocess.Popen[bytes]:
    """A run in a session of its own, with the signals that a shell leaves to it."""

    def heed() -> None:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)

    return subprocess.Popen(
        [str(DECAL), *line],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
        preexec_fn=heed,
    )


def prepared(folder: Path) -> None:
    """What `apply` reads."""
    rows = "".join(f"{k % 1000 / 1000}\n" for k in range(200_000))
    (folder / "rows.csv").write_text(f"p_hatesonar\n{rows}")
    assert started(("fit", "isotonic", ROWS, *TASK, "-o", "model.json"), folder).wait() == 0


class Command:
    """One command: its output when nobody stops it, and how long that takes."""

    def __init__(self, name: str, folder: Path) -> None:
        self.line, self.folder = LINES[name], folder
        self.out = folder / next(each for each in self.line if each.startswith("out."))
        begun = time.monotonic()
        process = started(self.line, folder)
        error = process.communicate()[1]
        self.code, self.seconds = process.returncode, time.monotonic() - begun
        assert self.code == 0, (self.line, error)
        self.new = self.out.read_bytes()

    def killed(self, number: int, share: float) -> str:
        """End a run after a share of its usual time; what became of it."""
        self.out.write_bytes(OLD)
        process = started(self.line, self.folder)
        time.sleep(share * self.seconds)
        process.send_signal(number)
        error = process.communicate()[1].decode()
        content, code = self.out.read_bytes(), process.returncode
        name = signal.Signals(number).name
        if "init_import_site" in error:
            # The interpreter itself was ended, before it came to any of our lines.
            return f"{name}: before Python had started"
        assert content in (OLD, self.new), (
            f"{self.line}, {name} at {share:.3f}: {len(content)} bytes, neither old nor new"
        )
        assert code in (self.code, Exit.INTERRUPTED, -number), f"{self.line}, {name} at {share:.3f}: {code}, {error}"
        assert "Traceback" not in error, f"{self.line}, {name} at {share:.3f}: {error}"
        assert code != self.code or content == self.new, f"{self.line}, {name}: done, and the old output stands"
        if code == Exit.INTERRUPTED:
            assert "interrupted" in error, error
        left = [path.name for path in self.folder.iterdir() if path.name.startswith(".decal-")]
        assert not left or number == signal.SIGKILL, f"{self.line}, {name} at {share:.3f} leaves {left}"
        for leftover in left:
            (self.folder / leftover).unlink()
        return f"{name}: {'new' if content == self.new else 'old'}, {code}"


def moment(rng: random.Random) -> float:
    """A share of a run's time."""
    return rng.random() if rng.random() < 0.5 else rng.uniform(0.85, 1.1)


def main() -> int:
    """Kill runs; 1 where an output was neither old nor new, or a code was none of those that are documented."""
    parser = argparse.ArgumentParser(description="Runs that are ended at random moments.")
    parser.add_argument("--runs", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    rng, outcomes, failures = random.Random(options.seed), Counter[str](), 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        prepared(folder)
        commands = [Command(each, folder) for each in LINES]
        for count in range(options.runs):
            if count % 100 == 99:
                print(f"{count + 1} runs: {dict(sorted(outcomes.items()))}", flush=True)
            try:
                outcomes[rng.choice(commands).killed(rng.choice(SIGNALS), moment(rng))] += 1
            except AssertionError as error:
                failures += 1
                print(error, flush=True)
    print(f"{outcomes.total()} runs were ended: {dict(sorted(outcomes.items()))}, {failures} failures")
    return int(failures > 0)


if __name__ == "__main__":
    sys.exit(main())
