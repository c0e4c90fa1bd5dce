"""What to do after a replay, in words."""

from __future__ import annotations

from collections.abc import Iterator

from decal_cli.analysis.online import Judged, StreamClusters
from decal_cli.numbers import percent, short
from decal_cli.render.blocks import Conclusion
from decal_cli.render.terms import Terms


def conclusion_of_replay(judged: Judged, terms: Terms) -> Conclusion:
    """The action, why, since when, and what it costs not to act."""
    return Conclusion(_headline(judged), tuple(_sentences(judged, terms)))


def _headline(judged: Judged) -> str:
    advice = judged.advice
    if advice.action == "retrain":
        return "Retrain: the base rate alone wins as much as this score."
    if advice.action == "keep":
        if judged.plan.score is None:
            return "There is no score: nothing is advised."
        miscalibrated = ", which is not calibrated: no recalibrator clearly wins" if judged.alarm else ""
        return f"Keep the score as it is{miscalibrated}."
    if advice.action == "move-threshold":
        at = "" if advice.threshold is None else f": act on the score from {short(advice.threshold, 3)}"
        return f"Move the threshold{at}."
    return f"Recalibrate online with {advice.method}."


def _sentences(judged: Judged, terms: Terms) -> Iterator[str]:
    advice, plan = judged.advice, judged.plan
    if advice.gain is None or advice.interval is None:
        if plan.candidates:
            interval = "confidence sequence" if judged.at_all_times else "interval"
            yield f"A method is advised where its {interval} is above 0{_shared(judged)}; none is."
        return
    several = ", an interval for all methods compared at once" if len(plan.candidates) > 1 else ""
    yield f"Not doing so has cost {terms.amount(advice.gain, advice.interval)}{several}."
    if judged.rows_per_day is not None and terms.per is None:
        a_day = advice.gain * judged.rows_per_day
        yield f"At {short(judged.rows_per_day, 1)} decisions a day that is {a_day:,.3g} {terms.noun} a day."
    if advice.since is not None:
        yield f"This has been clear since row {advice.since:,}."


def cluster_notes_of(clusters: StreamClusters, level: str, late: bool) -> Iterator[str]:
    """What intervals and the e-value say where rows are in clusters; late: whether their labels come in late."""
    count = len(clusters.size)
    if clusters.apart is None:
        yield (
            f"Intervals are {level} confidence sequences of the mean over clusters, of which there are {count:,}: they "
            "hold after every cluster at once, whenever one looks. A cluster enters when it is over, as one step by "
            f"the average of its rows{'.' if late else '; so it does into the e-value.'}"
        )
        return
    yield (
        f"Intervals hold at the {level} level for one look after the last row, and count {count:,} clusters. Rows of a "
        f"cluster do not all follow each other (the first that comes back is {clusters.apart.cluster!r}, in row "
        f"{clusters.apart.row:,}), so that nothing here holds whenever one looks."
    )


def _shared(judged: Judged) -> str:
    """What share of the risk one method has."""
    compared = len(judged.plan.candidates)
    return f" at {percent(judged.plan.alpha)}" + (
        f" divided by the {compared} methods compared" if compared > 1 else ""
    )
