"""What a type checker sees of every noun and verb, and what comes back: `make lint` checks it, and nothing runs it.

A mistake that it no longer finds is an ignored error too many, which fails as well.
"""

from pathlib import Path

import numpy as np

import decal_cli as decal

rng = np.random.default_rng(0)
p = rng.random(500)
y = rng.random(500) < p
data = decal.Data((p, y), group=p > 0.5, time=p).clustered(p).at_prevalence(0.3)
costs = decal.Decision.costs(fp=1, fn=2.5).in_terms(unit="EUR", decisions="1000/year", names="no,yes")
sure = decal.Statistics(confidence=0.9, seed=1, intervals=False)
answer: decal.EvaluateAnswer = decal.evaluate(p, y, metrics="brier", threshold=0.3)
answer = decal.evaluate(data, costs, statistics=sure)
answer = decal.evaluate("preds.csv", [[0, -1], [-0.3, 0]], regimes=True)
value: float | None = answer["brier"].value
advice: decal.RecommendAnswer = decal.recommend({"p": p, "y": y}, costs, costs=decal.Costs(post_train=0.01))
action: str = advice.advice.action
gate: decal.GateAnswer = decal.gate(p, y, rules=["brier<=0.2"], baseline=answer)
passed: bool | None = gate.passed
gate = decal.gate(decal.Data(Path("p.csv")), 0.3, rules=decal.Rules("brier<=baseline", baseline=Path("b.json")))
both: decal.CompareAnswer = decal.compare(decal.Data({"a": p}, y).models("a", "b"), decal.Decision(odds="1:3"))
over_time: decal.OnlineAnswer = decal.online(data, 0.3, over_time=decal.OverTime(delay=5, every="month"))
varied: decal.SweepAnswer = decal.sweep("k.csv", decal.Decision.abstain(0.2).vary("abstain", 0, 0.5))
by_row = decal.evaluate(data, decal.Decision.per_row(fn=p, fp=10).at_capacity("50/1000", per="day"))
three = decal.evaluate(data, decal.Decision.utility([[0, -20], [-2, -3], [-5, -1]], actions=["a", "b", "c"]))
amounts: decal.Terms = decal.Terms(unit="EUR", decisions=1e6, per="year", names=("no", "yes"))
curves: decal.SweepAnswer = decal.sweep(p, y, thresholds=[0.1, 0.2])
page: decal.ReportAnswer = decal.report(p, y, utility=[[0, -1], [-0.3, 0]], missing="drop")
page.save(Path("report.html"))
model: decal.FitAnswer = decal.fit(p, y, method="isotonic", seed=1)
rows = decal.apply(model, {"score": p}, name="better")
study: decal.StudyAnswer = decal.study(
    ["a.csv", Path("b.csv")], methods=["isotonic"], halvings=decal.Halvings(seeds=2, folder=Path("f"))
)
calibrator: decal.Calibrator = decal.Calibrator(method="platt", decision=0.2)
display: decal.ReliabilityDisplay = decal.ReliabilityDisplay.from_predictions(y, p)
text: str = answer.to_text("markdown") + repr(both) + curves._repr_html_()
frame = gate.to_frame("polars")

decal.Decision(treshold=0.3)  # type: ignore[call-arg]
decal.Data("preds.csv", missing="dorp")  # type: ignore[arg-type]
decal.evaluate("preds.csv", statistics=0.9)  # type: ignore[arg-type]
passed = decal.sweep([0.2], [1]).passed  # type: ignore[attr-defined]
