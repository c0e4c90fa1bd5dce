"""Real runs of every command that writes, ended by a signal at a random moment.

    python -m tests.fuzz.kills --runs 500

An output is the old one or the new one, never half of one. A run ends with its own exit code; with 130 where it was
asked to end and said so; or by the signal itself, before it has begun to write. What SIGKILL leaves beside an output
is taken away by the next run.
"""

import argparse
import json
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from itertools import islice
from pathlib import Path

from decal_cli.errors import Exit
from tests.helpers.command import FIXTURES, start_installed

N_ROWS = 300
NAMED = ("rows.csv", "-s", "p", "-y", "y")
TASK = (*NAMED, "-t", "0.3")
CROSSING = (str(FIXTURES / "fox_news.parquet"), "-s", "p_hatesonar", "-s", "p_mlp_hateval", "-y", "y")
OLD = b"old"
LINES: dict[str, tuple[str, ...]] = {
    "evaluate": ("evaluate", *TASK, "-o", "out.json"),
    "recommend": ("recommend", *TASK, "-o", "out.md"),
    "gate": ("gate", *TASK, "-r", "upper(brier)<=0.4", "-o", "out.xml", "-f", "junit"),
    "baseline": ("gate", *TASK, "-r", "brier<=0.4", "--write-baseline", "out.json"),
    "sweep": ("sweep", *NAMED, "--thresholds", "0.1:0.9:0.1", "-o", "out.csv"),
    "plot": ("sweep", *NAMED, "--thresholds", "0.1:0.9:0.2", "--no-intervals", "--plot", "out.png"),
    "compare": ("compare", *NAMED, "-s", "q", "-o", "out.html"),
    "splice": ("compare", *CROSSING, "--missing", "drop", "--force", "--write-splice", "out.csv"),
    "report": ("report", *TASK, "-o", "out.html"),
    "fit": ("fit", "isotonic", *TASK, "--force", "-o", "out.json"),
    "apply": ("apply", "model.json", "new.csv", "--force", "-o", "out.csv"),
    "study": ("study", *NAMED, "--method=platt", "--seeds=1", "--workers=1", "--thresholds=0.3", "-o", "out.study"),
}
SLOW = ("plot", "report", "study")
"""Commands that take seconds: they are run less often."""
SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)


def prepared(folder: Path) -> None:
    """What the commands read."""
    with open(FIXTURES / "binary_n2000.csv", encoding="utf-8") as rows:
        (folder / "rows.csv").write_text("".join(islice(rows, N_ROWS + 1)))
    new = "".join(f"{k % 1000 / 1000}\n" for k in range(200_000))
    (folder / "new.csv").write_text(f"p\n{new}")
    process = start_installed(folder, "fit", "isotonic", *TASK, "-o", "model.json")
    process.communicate()
    assert process.returncode == 0


class Command:
    """One command: its output when nobody stops it, and how long that takes."""

    def __init__(self, name: str, folder: Path) -> None:
        self.line, self.folder = LINES[name], folder
        self.out = folder / next(each for each in self.line if each.startswith("out."))
        begun = time.monotonic()
        process = start_installed(folder, *self.line)
        error = process.communicate()[1]
        self.code, self.seconds = process.returncode, time.monotonic() - begun
        assert self.code == 0, (self.line, error)
        self.new = self.content()

    def prepare(self) -> None:
        """Put the old output in its place."""
        self.out.write_bytes(OLD)

    def content(self) -> bytes:
        """What stands in the place of the output."""
        return self.out.read_bytes()

    def killed(self, number: int, share: float) -> str:
        """End a run after a share of its usual time; what became of it."""
        self.prepare()
        process = start_installed(self.folder, *self.line)
        time.sleep(share * self.seconds)
        process.send_signal(number)
        error = process.communicate()[1]
        content, code = self.content(), process.returncode
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
        left = [*self.folder.rglob(".decal-*")]
        assert not left or number == signal.SIGKILL, f"{self.line}, {name} at {share:.3f} leaves {left}"
        for leftover in left:
            leftover.unlink()
        return f"{name}: {'new' if content == self.new else 'old'}, {code}"


class StudyCommand(Command):
    """A study writes several files into a folder of its own, and what it measured, with the time that this took."""

    def prepare(self) -> None:
        """No study."""
        shutil.rmtree(self.out, ignore_errors=True)

    def content(self) -> bytes:
        """What is written: nothing, or all four files, each of them whole."""
        written = {path.name: path.read_text("utf-8", "replace") for path in self.out.glob("[!.]*.*")}
        measured = written.pop("units.jsonl", "")
        assert all(json.loads(line) for line in measured.splitlines()), measured
        if not written:
            return OLD
        assert written.keys() == {"points.csv", "points.parquet", "summary.json", "summary.md"}, written.keys()
        assert json.loads(written["summary.json"]) and written["points.parquet"].endswith("PAR1")
        return b"new"


def prepared_commands(folder: Path) -> dict[str, Command]:
    """All commands, each run once."""
    prepared(folder)
    return {name: (StudyCommand if name == "study" else Command)(name, folder) for name in LINES}


def moment(rng: random.Random) -> float:
    """A share of a run's time; half of them lie at its end, where it writes."""
    return rng.random() if rng.random() < 0.5 else rng.uniform(0.85, 1.1)


def main() -> int:
    """Kill runs; 1 where an output was neither old nor new, or a code was none of those that are documented."""
    parser = argparse.ArgumentParser(description="Runs that are ended at random moments.")
    parser.add_argument("--runs", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    rng, outcomes, runs, failures = random.Random(options.seed), Counter[str](), Counter[str](), 0
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        commands = prepared_commands(folder)
        names = [name for name in LINES for _ in range(1 if name in SLOW else 3)]
        for count in range(options.runs):
            if count % 100 == 99:
                print(f"{count + 1} runs: {dict(sorted(outcomes.items()))}", flush=True)
            try:
                name = rng.choice(names)
                outcomes[commands[name].killed(rng.choice(SIGNALS), moment(rng))] += 1
                runs[name] += 1
            except AssertionError as error:
                failures += 1
                print(error, flush=True)
    print(f"{outcomes.total()} runs were ended: {dict(sorted(outcomes.items()))}, {failures} failures")
    print(f"of each: {dict(sorted(runs.items()))}")
    return int(failures > 0)


if __name__ == "__main__":
    sys.exit(main())
