"""The runs whose every number is frozen: some ninety cases over fixtures and seeded rows.

`&&` joins commands, of which the last one prints.
"""

from decal_cli.data.large.engines import DIALECTS

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
    "sweep prevalence": f"sweep rows.csv {_TWO} --threshold .3 --vary prevalence=.05:.45:.1",
    "sweep capacity": f"sweep rows.csv {_TWO} --threshold .3 --vary capacity=40:200:40",
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
    # Where scores tie, at t* too, models are alike, and values are equal to bounds.
    "tied": f"evaluate tied.csv {_TWO} --threshold .5 --weight w",
    "tied, one score": "evaluate tied.csv --score still --label y --threshold .5 -m brier -m auc -m ece "
    "-m expected_utility -m regret -m gain_recalibration -m cdl -m c_emp -m kendall -m calibration_slope",
    "tied, sure": "evaluate tied.csv --score sure --label y --threshold .5 -m brier -m auc -m log_loss -m net_benefit "
    "-m expected_utility -m gain_recalibration -m utility_share -m observed_expected --group g",
    "tied, one label": "evaluate tied.csv --score p --label one --threshold .5 -m brier -m auc -m ppv -m npv "
    "-m expected_utility -m gain_recalibration -m utility_share -m observed_expected -m sensitivity -m specificity",
    "tied, fairness": f"evaluate tied.csv {_TWO} --group g --pack fairness --threshold .5",
    "tied, groups, places": f"evaluate tied.csv {_TWO} --group g --threshold .5 --capacity 8 --no-intervals",
    "tied, three classes": "evaluate tied.csv --proba a:* --label z --abstain .5 --no-intervals",
    "tied, stakes": f"evaluate tied.csv {_TWO} --amount amount --cost-fp 1 --capacity 16 --no-intervals",
    "tied, two models": "compare tied.csv --score p --score copy --label y --threshold .5",
    "tied, and one of one score": "compare tied.csv --score p --score still --label y --threshold .5 -m brier -m auc "
    "-m expected_utility",
    "tied, gate": f"gate tied.csv {_TWO} --threshold .5 --rule 'brier<=.265625' --rule 'brier<.265625' "
    "--rule 'brier>.265625' --rule 'upper(brier)>=.1' "
    "--rule rows>=32 --rule rows>32 --rule 'expected_utility>=-.09375' --rule 'accuracy<=.8125'",
    "tied, advice": f"recommend tied.csv {_TWO} --threshold .5",
    "tied, advice of one score": "recommend tied.csv --score still --label y --threshold .5 --cost 0 --tolerance 0",
    "tied, advice of a sure one": "recommend tied.csv --score sure --label y --threshold .5 --satisfied-at 0",
    "tied, curves": "sweep tied.csv --score p --score copy --score still --label y --thresholds .25,.5,.75",
    "tied, online": f"online tied.csv {_TWO} --threshold .5 --warm-up 16 --every 8 --method online-platt "
    "--method running-mean",
}

_ADVISE = "recommend rows.csv"
_BOTH = "--score p --score q --label y"
_BIKE = "fixtures/bike_stream.parquet --score p --label y --time t --threshold .4"
_OF_THE_SCORE = "platt temperature beta quadratic spline histogram scaling-binning meta-cal venn-abers threshold"
_VERBS = "evaluate recommend gate plan compare sweep online report sql fit apply study demo"
_ROWS, _PAIR = "'rows.csv', score='p', label='y'", "'rows.csv', score=['p', 'q'], label='y'"
PRINTED: dict[str, str] = {
    # Tables as they are by themselves, with the metrics that are shown where none are named.
    "table": f"{_FIRST} {_TWO} --threshold .4",
    "table, no task": f"{_FIRST} {_TWO} --weight w",
    "table, few rows, no intervals": f"evaluate few.csv {_TWO} --threshold .02 --no-intervals",
    "table, groups": f"{_FIRST} {_TWO} --group g --cost-fp 1 --cost-fn 4",
    "advice, terms": f"{_ADVISE} {_TWO} --group g --cost-fp 1 --cost-fn 4 --unit EUR --decisions 1000000/year "
    "--names no,yes",
    "table, two models": f"{_FIRST} {_BOTH} --odds 1:3 --cluster c",
    "table, two models, features": f"evaluate first.csv {_BOTH} --threshold .4 --features x1",
    "table, seven models": "evaluate fixtures/fox_news_new.parquet --score p_* --label y --threshold .3 --missing drop "
    "--no-intervals",
    "table, features": f"{_FIRST} {_TWO} --features x1,x2 --threshold .4",
    "table, capacity": f"{_FIRST} {_TWO} --capacity 12 --per day --threshold .3",
    "table, prevalence": f"{_FIRST} {_TWO} --prevalence .1 --threshold .2",
    "table, stakes": f"{_FIRST} {_TWO} {_STAKES} --confidence .9",
    "table, stakes, groups": f"{_FIRST} {_TWO} {_COLUMNS} --group g",
    "table, three actions": f"{_FIRST} {_TWO} {_TREAT}",
    "table, three classes": f"{_FIRST} {_THREE} --abstain .4",
    "table, three classes, no task": f"{_FIRST} {_THREE} --group g",
    "table, clinical": f"{_FIRST} {_TWO} --pack clinical --threshold .3",
    "table, credit": f"{_FIRST} {_BOTH} --pack credit --threshold .3",
    "table, fairness": f"{_FIRST} {_TWO} --group g --pack fairness --threshold .4 --plot groups.svg",
    "table, fairness, five groups": f"{_FIRST} {_TWO} --group day --pack fairness --threshold .4",
    "table, many groups": f"{_FIRST} {_TWO} --group c --threshold .4 -m brier -m auc --no-intervals",
    "table, regimes": f"{_FIRST} {_TWO} --features x1 --threshold .4 --regimes",
    "table, engine": f"evaluate {_TWO} {_DATABASE} --threshold .4",
    "table, cells": "evaluate cells.parquet --aggregated --threshold .4",
    "table, as many as are named": f"evaluate first.csv {_TWO} --features x1,x2,amount,alarm,tn,fn,fp,tp -m kendall "
    "-m brier --no-intervals",
    "table, mixed features": f"evaluate mixed.csv {_TWO} --features x1,kind,town,note --missing drop --threshold .4",
    "table, json lines, margins": "evaluate mixed.jsonl.gz --score m --margin --label word --positive yes "
    "--threshold .4",
    "table, logits, no label": "evaluate mixed.csv --score l --logit --label y --missing drop --threshold .4",
    "table, coarse cells": "evaluate coarse.parquet --aggregated --threshold .3 -m auc -m brier -m ece -m sm_cal -m ks "
    "-m average_precision -m c_emp -m ece_debiased -m gain_recalibration -m regret_calibration -m cdl -m u_cal "
    "-m log_loss -m expected_utility -m calibration_slope",
    "table, parameters": f"{_FIRST} {_TWO} -m 'ece(bins=7,strategy=width)' -m 'rule_regret(rule=spherical)' "
    "-m 'rule_regret(rule=v)' -m 'sm_ece(method=relplot)' -m ece_exact -m k2 -m net_benefit_standardised",
    "table, parameters, features": f"evaluate first.csv {_TWO} --features x1 --weight w -m kendall -m spearman "
    "-m features_pvalue",
    "table, numbers per place": f"{_FIRST} {_TWO} --amount amount --cost-fp 1 --capacity 60 -m least_gain "
    "-m value_capture -m gain_over_amount_ranking -m gain_over_score_ranking -m shadow_price -m lift",
    "table, two files by class": f"{_FIRST} {_THREE} --proba b:* --utility '1,0,0;0,1,0;0,0,1;.7,.7,.5' --prevalence "
    "lo=.2,mid=.3,hi=.5",
    "table, log": "evaluate fixtures/logs/sums.eval --from inspect --threshold .3",
    # Ties again, where pages, pictures and methods meet them.
    "tied, plan": f"plan --pilot tied.csv {_TWO} --threshold .5 --rule 'brier<=.265625' --rule auc>=.5 "
    "--rule 'gain_recalibration<=0'",
    "tied, page": f"report tied.csv {_TWO} --score still --threshold .5 --group g -o page.html",
    "tied, card": f"report tied.csv {_TWO} --score sure --threshold .5 --card",
    "tied, pictures": f"sweep tied.csv {_TWO} --score still --threshold .5 --thresholds .25,.5,.75 --plot curves.svg "
    "--picture brier --picture decision --picture waterfall --picture reliability --picture roc",
    "tied, places": f"sweep tied.csv {_TWO} --threshold .5 --vary capacity=8:32:8 --plot curves.png",
    "tied, factors": f"sweep tied.csv {_TWO} --amount amount --cost-fp-column w --vary cost-fp=.5:2:.5 --plot "
    "curves.png",
    "tied, actions": f"sweep tied.csv {_TWO} {_TREAT} --vary treat:0=-5:-2:1 --plot curves.png --picture actions",
    "tied, models and groups": f"compare tied.csv {_TWO} --score still --group g --id c --threshold .5 -m brier "
    "-m auc --plot curves.png",
    **{
        f"tied, fit {method}": f"fit {method} tied.csv {_TWO} --threshold .5 -o model.json --force && "
        "apply model.json tied.csv -o -"
        for method in ("isotonic", "threshold", "histogram", "scaling-binning", "meta-cal", "venn-abers")
    },
    # Advice.
    "advice": f"{_ADVISE} {_TWO} --threshold .4 -o advice.md",
    "advice, range": f"{_ADVISE} {_TWO} --threshold .2:.5",
    "advice, wide range": f"{_ADVISE} {_TWO} --threshold .05:.95",
    "advice, range of costs": f"{_ADVISE} {_TWO} --cost-fp 1 --cost-fn 3:8",
    "advice, no task": f"{_ADVISE} {_TWO}",
    "advice, costs, wishes": f"{_ADVISE} {_TWO} --threshold .4 --features x1 --cost post-train=.01 "
    "--cost recalibrate=.001 --satisfied-at -.1 --tolerance .002",
    "advice, two models, groups": f"{_ADVISE} {_BOTH} --threshold .4 --group g",
    "advice, time": f"{_ADVISE} {_TWO} --threshold .4 --time day",
    "advice, stakes, capacity": f"{_ADVISE} {_TWO} {_STAKES} --capacity 60",
    "advice, clear": "recommend fixtures/binary_n2000.csv --score p --label y --threshold .1 --satisfied-at -.05 "
    "--cost recalibrate=.002",
    "advice, clear, wishes": "recommend fixtures/fox_news.parquet --score p_profanity --label y --threshold .3 "
    "--missing drop --satisfied-at -.5 --unit EUR --decisions 1000/day",
    **{
        f"advice, world {k}": f"recommend world{k}.csv {_TWO} --threshold {threshold}"
        for k, threshold in enumerate((".05", ".3", ".5", ".05", ".3", ".5", ".1", ".2"))
    },
    "advice, world 3, features": f"recommend world3.csv {_TWO} --threshold .3 --features x*",
    "advice, world 5, features": f"recommend world5.csv {_TWO} --threshold .3 --features x*",
    "advice, few rows": f"recommend few.csv {_TWO} --threshold .4",
    "advice, method": f"{_ADVISE} {_TWO} --threshold .4 --method platt --method threshold --weight w",
    "advice, classes": f"{_ADVISE} {_THREE} --abstain .4 --method vector",
    # Gates and plans.
    "gate, formats": f"gate rows.csv {_BOTH} --threshold .4 --rule auc>=.7 --rule 'upper(ece)<=.001' --family holm "
    "--undecided pass --format junit=gate.xml --format sarif=gate.sarif --format markdown=gate.md --format github",
    "gate, groups": f"gate rows.csv {_TWO} --group g --rule 'gap(auc)<=.01' --rule 'auc@group=n<=.6' "
    "--rule 'max(brier)<=.2'",
    "gate, many groups": f"gate rows.csv {_TWO} --group c --rule brier<=.4 --rule auc>=.2",
    "gate, anytime": f"gate rows.csv {_TWO} --threshold .4 --anytime --rule brier<=.3 --rule accuracy>=.7 "
    "--rule 'expected_utility>=-.3' -f markdown",
    "gate, anytime, baseline": f"gate rows.csv {_TWO} --threshold .4 --anytime --rule 'drop(brier)<=.2' "
    "--baseline first.csv --undecided fail",
    "gate, refused": f"gate few.csv {_TWO} --rule net_benefit>=0 --format junit=gate.xml",
    "gate, drop": "gate rows.csv --score q --label y --baseline rows.csv --rule 'drop(auc)<=.5'",
    "plan": f"plan --pilot rows.csv {_TWO} --threshold .4 --rule 'gain_recalibration<=.01' --rule auc>=.6",
    "plan, no pilot": "plan --auc .8 --prevalence .1 --threshold .2 --half-width .02 --rule auc>=.7",
    # Two models.
    "comparison": f"compare rows.csv {_BOTH} --threshold .4 --plot curves.png",
    "comparison, spliced": "compare fixtures/fox_news.parquet -s p_profanity -s p_hatesonar --label y -m brier "
    "--no-intervals --write-splice spliced.csv",
    "comparison, no task, groups": f"compare rows.csv {_BOTH} --group g --weight w",
    "comparison, coarse pairs": "compare coarse_pairs.parquet --aggregated --threshold .3 -m brier -m auc -m ece "
    "-m expected_utility",
    "comparison, two files": "compare first.csv rows.csv --id x1 --score p --score q --label y --missing drop -m brier",
    "comparison, classes": "compare rows.csv --proba a:* --proba b:* --label z --abstain .4",
    "comparison, stakes": f"compare rows.csv {_BOTH} {_STAKES}",
    # Curves.
    "curves": f"sweep rows.csv {_BOTH} {_GRID} --features x1 --threshold .4 --plot curves.svg --picture brier "
    "--picture decision --picture waterfall --picture reliability --picture grouping --picture roc",
    "curves, in the terminal": f"sweep rows.csv {_BOTH} --threshold .4 {_GRID} --plot - --picture all",
    "curves, as many as are shown": f"sweep rows.csv {_BOTH} --score a:lo --threshold .4 --thresholds .05:.95:.09 "
    "--plot curves.svg --picture brier --picture decision --picture roc --picture reliability",
    "curves, one more": f"sweep rows.csv {_BOTH} --score a:lo --score b:lo --thresholds .05:.9:.07 --no-intervals "
    "--plot curves.svg --picture brier --picture decision",
    "curves, prior": f"sweep rows.csv {_TWO} --thresholds .1:.9:.1 --prior prior.csv --all",
    "curves, prevalence": f"sweep rows.csv {_BOTH} --threshold .3 --vary prevalence=.05:.45:.1 --plot curves.pdf",
    "curves, capacity": f"sweep rows.csv {_TWO} --threshold .3 --vary capacity=.1:.5:.1 --plot curves.png --group g",
    "curves, stakes": f"sweep rows.csv {_TWO} {_STAKES} --vary cost-fp=.5:2:.5 --plot curves.png",
    "curves, three actions": f"sweep rows.csv {_TWO} {_TREAT} --vary treat:0=-10:-1:3 --plot curves.png "
    "--picture actions --picture utility",
    "curves, three classes": f"sweep rows.csv {_THREE} --vary abstain=.1:.5:.1 --plot curves.png "
    "--picture risk-coverage --picture reliability --picture actions",
    # Over time.
    "online, state": f"online {_BIKE} --delay 1d --state state.json --rule 'e_calibration<20' --rule 'lower(gain)<.01' "
    "--plot replay.png --every month",
    "online, further": "online first.csv --score p --label y --threshold .4 --state more.json --warm-up 50 && "
    "online rows.csv --score p --label y --threshold .4 --state more.json --skip-known --rule 'e_calibration<20' "
    "--format junit && apply more.json few.csv -o -",
    "online, one method": f"online rows.csv {_TWO} --odds 1:2 --warm-up 100 --method online-platt --state one.json && "
    "apply one.json few.csv -o - --name scored",
    "online, predictions": f"online rows.csv {_TWO} --odds 1:2 --delay 20 --warm-up 100 -o predicted.parquet",
    "online, no score": "online rows.csv --label y --odds 1:2 --every 100 --warm-up 50 --confidence .9",
    "online, as many windows as are shown": f"online rows.csv {_TWO} --odds 1:2 --warm-up 50 --every 17 --method "
    "online-platt --rule 'e_calibration<=1e9'",
    "online, page": f"online rows.csv {_TWO} --threshold .4 --group g --warm-up 80 --unit EUR -o online.html "
    "--method online-platt --method fading-isotonic",
    # Pages and cards.
    "page": f"report first.csv {_BOTH} --threshold .4 -o page.html",
    "page, groups": f"report first.csv {_TWO} --odds 1:3 --group g -o page.html",
    "page, features": f"report first.csv {_TWO} --threshold .4 --features x1 --cost post-train=.01 -o page.html",
    "page, stakes": f"report rows.csv {_TWO} {_STAKES} -o page.html",
    "page, three classes": f"report rows.csv {_THREE} --proba b:* --abstain .4 -o page.html",
    "page, three actions": f"report rows.csv {_TWO} {_TREAT} -o page.html",
    "card": f"report rows.csv {_TWO} --threshold .4 --decision-threshold .6 --group g --card",
    "card, no task": "report rows.csv --score p --label g --positive s --card -o card.html",
    "card, three classes": f"report rows.csv {_THREE} --abstain .4 --card",
    "card, stakes, time": f"report first.csv {_BOTH} {_STAKES} --time x1 --card",
    # Methods.
    **{
        f"fit {method}": f"fit {method} rows.csv {_TWO} --threshold .4 -o model.json --force && "
        "apply model.json few.csv -o -"
        for method in _OF_THE_SCORE.split()
    },
    **{
        f"fit {method}": f"fit {method} rows.csv {_TWO} --features x1,x2 --group g --threshold .4 -o model.json "
        "--force && apply model.json few.csv -o -"
        for method in ("glar", "multicalibration", "refit", "stack")
    },
    **{
        f"fit {method}": f"fit {method} rows.csv {_THREE} --abstain .4 -o model.json --force && "
        "apply model.json few.csv -o -"
        for method in ("structured-matrix", "ensemble-temperature", "vector", "dirichlet")
    },
    "fit auto": "fit auto fixtures/fox_news.parquet --score p_profanity --label y --threshold .3 -o model.json --force",
    **{
        f"fit {method}": f"fit {method} mixed.csv {_TWO} --features x1,kind,town --missing drop --threshold .4 "
        "-o model.json --force && apply model.json mixed.csv --missing drop -o scored.csv --force"
        for method in ("stack-forest", "stack-boosting", "probing")
    },
    "fit stack, texts": f"fit stack mixed.csv {_TWO} --features note,town --missing drop -o model.json --force && "
    "apply model.json mixed.csv --missing drop -o scored.parquet --force",
    "fit boosted, classes": f"fit stack-boosting rows.csv {_THREE} --features x1,x2 --abstain .4 -o model.json "
    "--force && apply model.json few.csv -o -",
    # A study, statements, and what explains itself.
    "study": f"study rows.csv {_BOTH} --features x1 --method isotonic --method refit --thresholds .2,.4,.6 --seeds 2 "
    "--workers 1 -o study --figures",
    "study, clusters": f"study rows.csv first.csv {_TWO} --cluster c --method platt --thresholds .2,.45 --seeds 1 "
    "--workers 1 -o clusters",
    "study, weights": f"study rows.csv {_TWO} --weight w --method isotonic --thresholds .2,.5 --seeds 1 --workers 1 "
    "-o weights",
    **{
        f"statement, {dialect}": f"sql --dialect {dialect} --table preds --score p --label y --group g --cluster c "
        "--weight w"
        for dialect in DIALECTS
    },
    "statement, cells": "sql --table preds --score p --label y --cells --threshold .3 --logit",
    "statement, pairs": "sql --table preds --score p --score q --label y --pairs --cells --positive yes",
    **{
        f"statement, {method}": f"fit {method} rows.csv {_TWO} --threshold .4 -o model.json --force && "
        "sql --model model.json --table preds"
        for method in ("isotonic", "beta", "quadratic", "threshold")
    },
    "metrics": "metrics",
    "methods": "methods",
    "explained, method": "methods stack-boosting && methods probing",
    "explained": "metrics regret_calibration && metrics ece && methods glar && methods hedge",
    "help": " && ".join(f"{verb} --help-all && {verb} --help" for verb in _VERBS.split()),
    # The same in Python.
    **{
        f"python, {call}": f"python decal.{call}"
        for call in (
            f"evaluate({_ROWS}, threshold=.4)",
            f"evaluate({_ROWS}, threshold=.4, metrics=['brier'])",
            f"evaluate({_PAIR}, threshold=.4, group='g')",
            f"evaluate({_ROWS}, metrics=['net_benefit', 'kendall', 'top_accuracy', 'capture'])",
            f"recommend({_ROWS}, threshold=.4)",
            f"recommend({_ROWS}, cost_fp=1, cost_fn=(3, 8))",
            f"gate({_ROWS}, threshold=.4, rules=['auc>=.7', 'brier<=.3'])",
            f"compare({_PAIR}, threshold=.4)",
            "sweep('rows.csv', score=['p', 'q', 'a:lo'], label='y', thresholds=[.2, .4], intervals=False)",
            "sweep('rows.csv', score=['p', 'q', 'a:lo', 'b:lo'], label='y', thresholds=[.2, .4], intervals=False)",
            f"fit({_ROWS}, method='isotonic', threshold=.4)",
            f"online({_ROWS}, threshold=.4, warm_up=100, methods=['online-platt'])",
            f"evaluate({_ROWS}, threshold=1)",
            f"evaluate({_ROWS}, missing='none')",
            f"recommend({_ROWS})",
        )
    },
}
"""Lines that are run as they stand, or calls of Python: kept is what they print, write and draw."""

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
