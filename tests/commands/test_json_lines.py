"""What JSON Lines hold is what every other format would: no value is lost, guessed at or rounded."""

import json
from pathlib import Path

import pandas as pd
import pytest

import decal_cli
from tests.helpers.command import Decal

ROWS = [(0.1, 0), (0.9, 1), (0.4, 0), (0.7, 1)]


@pytest.mark.parametrize("line", ['{"p": 0.4, "p": 0.5, "y": 0}', '{"p": 0.4, "y": 0, "note": {"p": 1, "p": 2}}'])
def test_a_key_that_stands_twice_on_any_line_is_refused(decal: Decal, tmp_path: Path, line: str) -> None:
    (tmp_path / "rows.jsonl").write_text(f'{{"p": 0.1, "y": 0}}\n{{"p": 0.9, "y": 1}}\n{line}\n')
    done = decal("evaluate", "rows.jsonl")
    assert done.code == 2 and done.err == "decal: rows.jsonl, line 3: duplicate column 'p'; rename one of the two\n"


def test_truth_values_are_no_scores_in_any_text(decal: Decal, tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_text('{"p": 0.1, "y": 0}\n{"p": true, "y": 1}\n')
    (tmp_path / "rows.csv").write_text("p,y\n0.1,0\ntrue,1\n")
    for name, line in (("rows.jsonl", 2), ("rows.csv", 3)):
        done = decal("evaluate", name)
        assert done.code == 2
        assert f"{name}, column 'p', row 2 (line {line}): 'true' is not a number" in done.err


def test_truth_values_are_booleans_as_features(tmp_path: Path) -> None:
    rows = pd.DataFrame([{"p": p, "y": y, "x": y == 1} for p, y in ROWS * 10])
    rows.to_json(tmp_path / "rows.jsonl", orient="records", lines=True)
    rows.to_csv(tmp_path / "rows.csv", index=False)
    for file in ("rows.jsonl", "rows.csv"):
        answer = decal_cli.recommend(tmp_path / file, features="x", threshold=0.5)
        assert "1 boolean" in answer.to_text(), file


@pytest.mark.parametrize("large", [2**64 - 1, 2**53 + 1, -(2**63), 10**25 + 1])
@pytest.mark.parametrize("kind", ["jsonl", "csv"])
def test_a_large_label_is_named_as_it_is(decal: Decal, tmp_path: Path, large: int, kind: str) -> None:
    rows = [{"p": p, "y": large if y else large - 1} for p, y in ROWS]
    lines = {"jsonl": map(json.dumps, rows), "csv": ["p,y", *(f"{row['p']},{row['y']}" for row in rows)]}[kind]
    (tmp_path / f"rows.{kind}").write_text("\n".join(lines) + "\n")
    done = decal("evaluate", f"rows.{kind}")
    assert done.code == 2 and str(large) in done.err and str(large - 1) in done.err
    done = decal("evaluate", f"rows.{kind}", f"--positive={large}", "-m", "auc", "-f", "json")
    report = json.loads(done.out)["reports"][0]
    assert (report["positives"], report["metrics"]["auc"]["value"]) == (2, 1)


@pytest.mark.parametrize("name", ["\x85", "a\x85", "\xa0b", "\u2028"])
def test_a_column_keeps_a_name_that_unicode_calls_space(decal: Decal, tmp_path: Path, name: str) -> None:
    """Blanks around a name in a header go; U+0085 is one of the characters that Python strips as well."""
    rows = [{name: p, "y": y} for p, y in ROWS]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
    (tmp_path / "rows.csv").write_text(f" {name}\t,y \n" + "".join(f"{p},{y}\n" for p, y in ROWS))
    (tmp_path / "quoted.csv").write_text(f'"{name}",y\n' + "".join(f'"{p}",{y}\n' for p, y in ROWS))
    for file in ("rows.jsonl", "rows.csv", "quoted.csv"):
        done = decal("evaluate", file, "--score", name, "--label", "y", "-m", "auc", "-f", "json")
        assert json.loads(done.out)["reports"][0]["model"] == name, file
