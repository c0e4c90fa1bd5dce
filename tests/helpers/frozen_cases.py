"""The runs whose every number is frozen: some seventy cases over fixtures and seeded rows.

`&&` joins commands, of which the last one prints.
"""

_TWO = "--score p --label y"
_THREE = "--proba a:* --label z"
_FIRST = "evaluate rows.csv"
_DATABASE = "--engine duckdb:file.db?table=rows"
_TREAT = "--utility 'wait,0,-20;test,-2,-3;treat,-5,-1'"
_FOUR_BY_THREE = "--utility '1,0,0;0,1,0;0,0,1;.7,.7,.5'"
_STAKES = "--amount amount --cost-fp-column alarm"
_COLUMNS = "--utility-columns tn,fn,fp,tp"
_GRID = "--thresholds .1:.9:.2"
CASES: dict[str, str] = {
    # Two classes.
    "evaluate binary": "evaluate fixtures/binary_n2000.csv --score p --label y --threshold .3",
    "evaluate binary, weights, clusters": "evaluate fixtures/binary_n2000.csv --score p --label y --weight weight "
    "--cluster group --threshold .3 --confidence .9",
    "evaluate ties": "evaluate fixtures/ties_edges_n300.csv --score p --label y --threshold .2 --seed 3",
    "evaluate fox news, features": "evaluate fixtures/fox_news_new.parquet --score p_hatesonar --label y "
    "--features x0* --threshold .3 --missing drop",
    "evaluate without a task": f"{_FIRST} {_TWO}",
    "evaluate weights": f"{_FIRST} {_TWO} --weight w --cost-fp 1 --cost-fn 4",
    "evaluate clusters": f"{_FIRST} {_TWO} --cluster c --threshold .4",
    "evaluate weights, clusters, groups": f"{_FIRST} {_TWO} --weight w --cluster c --group g --odds 1:3",
    "evaluate groups, fairness": f"{_FIRST} {_TWO} --group g --pack fairness --threshold .4",
    "evaluate another decision threshold": f"{_FIRST} {_TWO} --threshold .4 --decision-threshold .6",
    "evaluate two models": f"{_FIRST} --score p --score q --label y --utility '1,-3;.25,2'",
    "evaluate prevalence": f"{_FIRST} {_TWO} --prevalence .1 --threshold .2",
    "evaluate prevalence, weights": f"{_FIRST} {_TWO} --sampled-negatives .25 --keep-scores --weight w --threshold .2",
    "evaluate capacity": f"{_FIRST} {_TWO} --capacity 60 --threshold .3",
    "evaluate capacity, day": f"{_FIRST} {_TWO} --capacity 12 --per day --threshold .3 --weight w",
    "evaluate capacity, no task": f"{_FIRST} {_TWO} --capacity .1 --cluster c",
    "evaluate reference": f"{_FIRST} {_TWO} --reference fixtures/ties_edges_n300.csv --threshold .4 -m psi -m auc",
    "evaluate regimes": f"{_FIRST} {_TWO} --features x* --threshold .4 --regimes -m regret -m gain_beyond",
    "evaluate logs": "evaluate fixtures/logs/samples_quiz.jsonl --from lm-eval --threshold .3",
    # Stakes of each row.
    "evaluate stakes": f"{_FIRST} {_TWO} {_STAKES}",
    "evaluate stakes, weights, clusters": f"{_FIRST} {_TWO} {_COLUMNS} --weight w --cluster c",
    "evaluate stakes, groups": f"{_FIRST} {_TWO} --amount amount --cost-fp 1 --group g",
    "evaluate stakes, capacity": f"{_FIRST} {_TWO} {_STAKES} --capacity 12 --per day",
    "evaluate stakes, prevalence": f"{_FIRST} {_TWO} {_COLUMNS} --prevalence .2",
    "recommend stakes, features": f"recommend rows.csv {_TWO} {_STAKES} --features x1 --features x2",
    # More than two actions, or classes.
    "evaluate three actions": f"{_FIRST} {_TWO} {_TREAT}",
    "evaluate three actions, weights, clusters": f"{_FIRST} {_TWO} {_TREAT} --weight w --cluster c",
    "evaluate three classes": "evaluate fixtures/multiclass_n1500_k3.csv --proba p_* --label y --abstain .3",
    "evaluate three classes, four actions": f"{_FIRST} {_THREE} {_FOUR_BY_THREE}",
    "evaluate three classes, weights, clusters": f"{_FIRST} {_THREE} --abstain .4 --weight w --cluster c",
    "recommend three classes, groups": f"recommend rows.csv {_THREE} {_FOUR_BY_THREE} --group g",
    "recommend three classes, features": f"recommend rows.csv {_THREE} --abstain .4 --features x1 --features x2",
    "recommend three actions": f"recommend rows.csv {_TWO} {_TREAT}",
    # Advice.
    "recommend binary": "recommend fixtures/binary_n2000.csv --score p --label y --features x1 --features x2 "
    "--threshold .3 --cost post-train=.01",
    "recommend terms": f"recommend rows.csv {_TWO} --weight w --threshold .4 --unit EUR --decisions 1000/year "
    "--names no,yes --cost 20",
    "recommend capacity": f"recommend rows.csv {_TWO} --threshold .3 --capacity 60 --cluster c",
    "recommend prevalence": f"recommend rows.csv {_TWO} --threshold .2 --prevalence .1",
    "recommend, methods": f"recommend rows.csv {_TWO} --threshold .4 --features x* --method isotonic --method stack",
    "recommend, methods, clusters": f"recommend rows.csv {_TWO} --threshold .4 --cluster c --weight w --try",
    "recommend, methods, three classes": f"recommend rows.csv {_THREE} --abstain .4 --method temperature "
    "--method structured-vector",
    # Gates.
    "gate": f"gate rows.csv {_TWO} --weight w --cluster c --threshold .4 --rule 'upper(brier)<=.3' --rule 'auc>=.9' "
    "--rule 'regret_calibration<=.1'",
    "gate groups": f"gate rows.csv {_TWO} --group g --threshold .4 --rule 'gap(ece)<=.5' --rule rows>=100",
    "gate stakes": f"gate rows.csv {_TWO} {_STAKES} --rule 'lower(expected_utility)>=-2' --rule 'gain_over_amount>=0'",
    "gate baseline": f"gate rows.csv {_TWO} --threshold .4 --rule brier<=.3 --rule expected_utility>=-1 "
    f"--write-baseline base.json && gate rows.csv --score q --label y --threshold .4 --baseline base.json "
    "--rule 'brier<=baseline+.05' --rule 'expected_utility>=baseline-.05'",
    # Two models.
    "compare": "compare rows.csv --score p --score q --label y --threshold .4",
    "compare weights, clusters": "compare rows.csv --score p --score q --label y --threshold .4 --weight w "
    "--cluster c -m brier -m auc -m expected_utility -m gain_recalibration",
    "compare groups": "compare rows.csv --score p --score q --label y --threshold .4 --group g -m brier -m auc",
    "compare stakes": f"compare rows.csv --score p --score q --label y {_STAKES}",
    "compare capacity": "compare rows.csv --score p --score q --label y --threshold .3 --capacity 60",
    "compare three classes": f"compare rows.csv --proba a:* --proba b:* --label z {_FOUR_BY_THREE}",
    "compare three actions": f"compare rows.csv --score p --score q --label y {_TREAT}",
    # Curves.
    "sweep binary": f"sweep fixtures/binary_n2000.csv --score p --label y {_GRID} --prior beta:2,5",
    "sweep weights, clusters, groups": f"sweep rows.csv {_TWO} --weight w --cluster c --group g {_GRID}",
    "sweep features": f"sweep rows.csv {_TWO} --features x1 --features x2 --thresholds .2,.5",
    "sweep prevalence": f"sweep rows.csv {_TWO} --threshold .3 --prevalence-range .05:.45:.1",
    "sweep capacity": f"sweep rows.csv {_TWO} --threshold .3 --capacity-range 40:200:40",
    "sweep stakes": f"sweep rows.csv {_TWO} {_STAKES}",
    "sweep three actions": f"sweep rows.csv {_TWO} {_TREAT} --vary treat:0=-10:-1:3",
    "sweep three classes": f"sweep rows.csv {_THREE} --abstain .4 --vary abstain=.1:.5:.1",
    # Counts, engines.
    "evaluate engine": f"evaluate {_TWO} {_DATABASE} --threshold .4 --group g",
    "evaluate engine, weights, clusters": f"evaluate {_TWO} {_DATABASE} --threshold .4 --weight w --cluster c",
    "compare engine": f"compare --score p --score q --label y {_DATABASE} --threshold .4 --weight w -m brier -m auc "
    "-m expected_utility",
    "sweep engine": f"sweep {_TWO} {_DATABASE} {_GRID}",
    "recommend engine, features": f"recommend {_TWO} {_DATABASE} --threshold .4 --features x1 --features x2",
    "evaluate counts": "evaluate counts.parquet --aggregated --threshold .4 --group g",
    "evaluate cells": "evaluate cells.parquet --aggregated --threshold .4",
    "compare pairs": "compare pairs.parquet --aggregated --threshold .4 -m brier -m auc -m expected_utility",
    # Methods, and time.
    "fit isotonic": f"fit isotonic rows.csv {_TWO} --threshold .4 --weight w -o model.json",
    "fit blend": f"fit blend rows.csv {_TWO} --features x* --threshold .4 --cluster c -o model.json",
    "fit three classes": f"fit temperature rows.csv {_THREE} --abstain .4 -o model.json",
    "apply": f"fit beta rows.csv {_TWO} --threshold .4 -o model.json && apply model.json few.csv -o -",
    "online": "online rows.csv --score p --label y --threshold .4 --warm-up 100 --every 100",
    "online bike": "online fixtures/bike_stream.parquet --score p --label y --time t --threshold .4 --delay 1d "
    "--method as-it-is --method online-platt",
    "online clusters, groups": f"online rows.csv {_TWO} --cluster c --group g --warm-up 100 --cost-fp 1 --cost-fn 2 "
    "--method rolling-isotonic --method hedge",
}

UNSTABLE: list[tuple[str, str, float]] = [
    ("*", "*_null*", 0.05),
    ("evaluate weights, clusters, groups", "reports.[12].metrics.gain_*.interval.?", 0.1),
    ("evaluate weights, clusters, groups", "reports.[12].metrics.threshold_adjusted.interval.?", 0.4),
    ("evaluate three actions, weights, clusters", "*gain_recalibration.interval.?", 1e-8),
    ("* three classes*", "*regret_calibration*", 0.05),
    ("* three classes*", "*swap_regret.interval.?", 1e-3),
]
"""Case and key of numbers that the last bit of a sum moves by so much, relatively, from one processor to the next.

Random draws take shares and sizes that are sums, and bins of a margin cut rows that tie but for the last bit.
"""
