"""Equal-mass bins against brute force: every metric of them, on tables of few levels with heavy ties anywhere."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pytest

import decal_cli
from decal_cli.data import reading
from tests.helpers.command import FIXTURES, Decal

KEYS = ("ece", "cl", "rmsce", "mce", "ece_debiased", "regret_calibration")
ON_BINS = ("cfdl", "cdl", "v_cdl", "rule_cfdl")
Columns = dict[str, np.ndarray]


def tables() -> Iterator[tuple[Columns, int, float]]:
    """150 tables of 1 to 30 levels, ties at both ends and between; some weighted; how many bins, and the threshold."""
    rng = np.random.default_rng(11)
    for number in range(150):
        levels = np.sort(rng.choice(129, int(rng.integers(1, 31)), replace=False)) / 128  # sums are exact
        mass = rng.exponential(1, len(levels))
        for heavy in rng.choice([0, len(levels) // 2, len(levels) - 1], 2):
            mass[heavy] += rng.choice([0.0, 3.0, 30.0])
        score = rng.choice(levels, int(rng.integers(2, 120)), p=mass / mass.sum())
        data = {"p": score, "y": (rng.random(len(score)) < rng.choice([score.mean(), 0.5])).astype(int)}
        if number % 3 == 0:
            data["w"] = rng.integers(1, 5, len(score)).astype(float)
        yield data, int(rng.choice([15, 15, 2, 4])), float(rng.choice([0.25, 0.5, 0.75]))


def bin_of_row(data: Columns, bins: int) -> np.ndarray:
    """Edges are the i/k quantiles, less the largest score; a score on an edge belongs to the bin below."""
    p = data["p"]
    if "w" in data:  # The least score up to which i/k of the weight lies.
        upto = [(data["w"][p <= score].sum(), score) for score in np.unique(p)]
        edges = [min(s for w, s in upto if w * bins >= i * data["w"].sum()) for i in range(1, bins)]
    else:
        edges = [np.quantile(p, i / bins) for i in range(1, bins)]
    return np.array([sum(score > edge for edge in set(edges)) for score in p])


def by_hand(data: Columns, bins: int, t: float) -> tuple[dict[str, float], np.ndarray]:
    """The metrics of bins, and every row's bin mean."""
    p, y, w = data["p"], data["y"], data.get("w", np.ones(len(data["p"])))
    share, gap, noise, regret, rows, mean_score = [], [], 0.0, 0.0, [], p.copy()
    number = bin_of_row(data, bins)
    for here in (number == one for one in np.unique(number)):
        q, h = np.average(p[here], weights=w[here]), np.average(y[here], weights=w[here])
        share, gap = [*share, w[here].sum() / w.sum()], [*gap, h - q]
        rows.append(w[here].sum() ** 2 / (w[here] ** 2).sum())
        mean_score[here] = q
        regret += abs(h - t) * w[here & ((p >= t) != (h >= t))].sum() / w.sum()
    gaps, shares, counts = np.abs(gap), np.array(share), np.array(rows)
    several = counts > 1 + 1e-9
    rate = np.array([np.average(y[mean_score == q], weights=w[mean_score == q]) for q in np.unique(mean_score)])
    noise = rate * (1 - rate) / np.where(several, counts - 1, 1)
    square = shares @ gaps**2
    debiased = float((shares * (gaps**2 - noise))[several].sum()) if several.any() else np.nan
    found = shares @ gaps, square, square**0.5, gaps.max(), debiased, regret
    return dict(zip(KEYS, map(float, found), strict=True)), mean_score


def measured(data: Columns, keys: list[str], threshold: float) -> dict[str, float]:
    answer = decal_cli.evaluate(
        data, score="p", label="y", weight="w" if "w" in data else None, metrics=keys, threshold=threshold,
        intervals=False,
    )  # fmt: skip
    found = answer.to_dict()["metrics"]
    return {key: np.nan if found[key]["value"] is None else found[key]["value"] for key in keys}


def test_every_metric_of_bins_is_that_of_brute_force() -> None:
    for number, (data, bins, threshold) in enumerate(tables()):
        expected, mean_score = by_hand(data, bins, threshold)
        named = {key: f"{key}(bins={bins})" if bins != 15 else key for key in KEYS}
        got = measured(data, list(named.values()), threshold)
        for key, name in named.items():
            assert got[name] == pytest.approx(expected[key], abs=1e-9, nan_ok=True), (number, key)
        if bins == 15:
            binned = measured({**data, "p": mean_score}, [f"{key}(levels=exact)" for key in ON_BINS], threshold)
            got = measured(data, [f"{key}(levels=bins)" for key in ON_BINS], threshold)
            for key in ON_BINS:
                a, b = got[f"{key}(levels=bins)"], binned[f"{key}(levels=exact)"]
                assert a == pytest.approx(b, abs=1e-9, nan_ok=True), (number, key)


@pytest.mark.parametrize(("file", "error"), [("hu_wu_1_1", 0.2), ("hu_wu_4_3b", 0.49)])
def test_two_levels_are_two_bins(decal: Decal, file: str, error: float) -> None:
    done = decal("evaluate", FIXTURES / "papers" / f"{file}.csv", "-m", "ece", "-m", "ece_exact", "-f", "json")
    metrics = json.loads(done.out)["reports"][0]["metrics"]
    assert [metrics[key]["value"] for key in ("ece", "ece_exact")] == pytest.approx([error] * 2, abs=1e-12)


def heavy_below() -> Columns:
    """Half of the rows at the lowest of eight levels, none of them calibrated."""
    score = np.repeat(np.arange(1, 9) / 16, [70, 10, 10, 10, 10, 10, 10, 10])
    return {"p": score, "y": (np.arange(len(score)) % 3 == 0).astype(int)}


def test_every_road_has_the_bins_of_the_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data, path = pd.DataFrame(heavy_below()), tmp_path / "rows.parquet"
    data.to_parquet(path)
    expected, _ = by_hand(heavy_below(), 15, 0.3)
    counts = data.groupby("p")["y"].agg(n="size", pos="sum").reset_index().rename(columns={"p": "score"})
    ask: dict[str, Any] = {"metrics": list(KEYS), "threshold": 0.3, "intervals": False}
    named = {"score": "p", "label": "y", **ask}
    with duckdb.connect(str(tmp_path / "rows.db")) as connection:
        connection.execute("create table preds as select * from data")
    answers = {
        "rows": decal_cli.evaluate(path, **named),
        "counts": decal_cli.evaluate(counts, aggregated=True, **ask),
        "engine": decal_cli.evaluate(f"duckdb:{tmp_path}/rows.db?table=preds", **named),
    }
    monkeypatch.setattr(reading, "MAX_IN_MEMORY_BYTES", 0)
    answers["stream"] = decal_cli.evaluate(path, **named)
    for road, answer in answers.items():
        found = {key: answer.to_dict()["metrics"][key]["value"] for key in KEYS}
        assert found == pytest.approx(expected, abs=1e-12), road


def test_regimes_and_histogram_have_the_bins_of_the_metrics() -> None:
    data = heavy_below()
    regimes = decal_cli.evaluate(data, score="p", label="y", threshold=0.3, regimes=True, metrics="ece").to_dict()
    expected = {score: data["y"][data["p"] == score].mean() for score in np.unique(data["p"])}
    (report,) = regimes["reports"]
    assert {each["low"]: each["rate"] for each in report["regimes"]} == pytest.approx(expected)
    model = decal_cli.fit(data, score="p", label="y", method="histogram")
    new = model.apply({"p": np.array([*expected, 0.07])})["p_histogram"]
    assert list(new) == pytest.approx([*expected.values(), expected[0.125]]), "a score above an edge has the next bin's"


def test_psi_has_the_bins_of_the_metrics_and_scores_above_an_edge_lie_above_it() -> None:
    """Bins end at .1 and .5; half, a fourth and a fourth of the reference, a tenth, .4 and .5 of the rows."""
    reference = {"p": np.repeat([0.1, 0.5, 0.9], [20, 10, 10]), "y": np.tile([0, 1], 20)}
    rows = {"p": np.repeat([0.1, 0.2, 0.5, 0.51], [2, 4, 4, 10]), "y": np.tile([0, 1], 10)}
    answer = decal_cli.evaluate(rows, score="p", label="y", reference=reference, metrics="psi")
    expected = 0.4 * np.log(0.5 / 0.1) + 0.15 * np.log(0.4 / 0.25) + 0.25 * np.log(0.5 / 0.25)
    assert answer["psi"].value == pytest.approx(expected, abs=1e-12)
