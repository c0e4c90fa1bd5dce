"""Does the page of `decal evaluate` follow from the numbers of its own JSON? Every sentence of the summary is checked.

A sentence that the reader does not know counts as a contradiction, so that new wording needs a new condition.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from tests.helpers.page import CONSTANT

_N = r"(-?[\d,]*\.?\d+)"
_ENDS = rf"(?: \[{_N}, {_N}\])?"
_AMOUNT = _N + _ENDS
_NAME = r"(.+?)"
Report = Mapping[str, Any]


def _number(text: str) -> float:
    """A printed number."""
    return float(text.replace(",", ""))


def shows(texts: tuple[str | None, ...], expected: tuple[float, ...], per: float = 1000.0) -> bool:
    """Whether printed numbers are these, each rounded to the decimals that are printed."""
    printed = [text for text in texts if text is not None]
    if len(printed) != len(expected):
        return False
    return all(
        abs(_number(text) - per * value) <= 0.5001 * 10.0 ** -len(text.partition(".")[2])
        for text, value in zip(printed, expected, strict=True)
    )


def _flat(result: Mapping[str, Any], sign: int = 1) -> tuple[float, ...]:
    """A value and its interval, of both signs."""
    ends = () if result["interval"] is None else sorted(sign * end for end in result["interval"])
    return sign * result["value"], *ends


def _worth(report: Report, found: re.Match[str]) -> bool:
    metrics = report["metrics"]
    now, over, stake = (metrics[key] for key in ("expected_utility", "external_regret", "utility_at_stake"))
    constant = now["value"] + over["value"]
    size, side, listed = found[5], found[8], found.groups()
    # Above the constant decision is below 0 for the regret to it.
    if over["value"] * {"less": 1, "more": -1}.get(side, 0) < 0:
        return False
    sign = 1 if side == "less" else -1
    beside = shows(listed[4:7], _flat(over, sign)) if size else abs(over["value"]) < 1e-9
    fits = shows(listed[1:4], _flat(now)) and beside
    return fits and shows((listed[9],), (constant,)) and shows((listed[10],), (constant + stake["value"],))


def _limited(report: Report, found: re.Match[str]) -> bool:
    metrics, listed = report["metrics"], found.groups()
    now, whole = metrics["utility_at_capacity"], metrics["expected_utility"]
    over = _number(listed[4]) * (-1 if listed[7] == "less" else 1) if listed[4] else 0.0
    adds_up = abs(_number(listed[1]) - over - _number(listed[8])) <= 2.01 * 10.0 ** -len(listed[1].partition(".")[2])
    return shows(listed[1:4], _flat(now)) and adds_up and shows((listed[9],), (whole["value"],))


def _gain(key: str, verb: str, limited: bool | None) -> Callable[[Report, re.Match[str]], bool]:
    def fits(report: Report, found: re.Match[str]) -> bool:
        gain, at_limit = report["metrics"][key], report["metrics"].get("utility_at_capacity", {"value": None})
        if limited is not None and limited is (at_limit["value"] is None):
            return False
        low, high = gain["interval"] or (gain["value"], gain["value"])
        clear = {"would win": low > 0 or (gain["interval"] is None and gain["value"] >= 0), "would lose": high < 0}
        return clear.get(verb, low <= 0 <= high) and shows(
            found.groups(), _flat(gain, -1 if verb == "would lose" else 1)
        )

    return fits


def _features(report: Report, found: re.Match[str]) -> bool:
    unknown = report["metrics"].get("gain_beyond", {"value": None})["value"] is None
    worst = report["metrics"].get("regret_grouping_worst", {"value": None})["value"]
    return unknown and (found[1] is None or (worst > 0 and shows((found[1],), (worst,))))


def _share(report: Report, found: re.Match[str]) -> bool:
    value = report["metrics"]["utility_share"]["value"]
    return value is not None and abs(_number(found[1]) - 100 * value) <= 0.5 and value > 0


def _metric(key: str, per: float = 1.0, part: str = "") -> Callable[[Report, re.Match[str]], bool]:
    def fits(report: Report, found: re.Match[str]) -> bool:
        metrics, groups = report["metrics"], found.groups()
        whole, of_that = groups[:3], groups[3:]
        fine = shows(whole, _flat(metrics[key]), per)
        return fine and (not part or of_that[0] is None or shows(of_that, (metrics[part]["value"],), per))

    return fits


SENTENCES: tuple[tuple[str, Callable[[Report, re.Match[str]], bool]], ...] = (
    (
        rf"Acting on (?!the rows){_NAME} is worth {_AMOUNT} per 1,000 decisions, (?:{_AMOUNT} (more|less) than|as much "
        rf"as) ({CONSTANT}), the best constant decision \({_N}\); perfect knowledge would be worth {_N}",
        _worth,
    ),
    (
        rf"Acting on the rows that {_NAME} puts first is worth {_AMOUNT} per 1,000 decisions, (?:{_AMOUNT} (more|less) "
        rf"than|as much as) acting on none \({_N}\); without the limit it would be worth {_N}",
        _limited,
    ),
    (r"That is ([\d.]+) % of what the best threshold on these scores would win", _share),
    *(
        (f"{who} {verb}{':' if verb.startswith('may') else ''} {_AMOUNT}", _gain(key, verb, limited))
        for who, key, limited in (
            ("Recalibration", "gain_recalibration", False),
            ("Without the limit, recalibration", "gain_recalibration", True),
            ("Beyond that, the features", "gain_beyond", None),
        )
        for verb in ("would win", "would lose", "may win or lose")
    ),
    (
        r"What recalibration would win is unknown: it .*",
        lambda report, _: report["metrics"]["gain_recalibration"]["value"] is None,
    ),
    (
        rf"What features would win beyond that is unknown without --features(?:: at most {_N}, which is an upper limit "
        "and not an estimate)?",
        _features,
    ),
    (
        "On these rows, features cannot win anything beyond recalibration: knowing every label would then add nothing",
        lambda report, _: report["metrics"]["regret_grouping_worst"]["value"] == 0,
    ),
    (rf".+? puts a row of label 1 above one of label 0 with probability {_AMOUNT} \(AUC\)", _metric("auc")),
    (
        rf"(?:Its|.+?'s) Brier score is {_AMOUNT}(?:, of which {_N} is miscalibration)?",
        _metric("brier", part="corp_mcb"),
    ),
    (
        r"What acting on it wins or loses needs a decision: give --.*",
        lambda report, _: (
            "expected_utility" not in report["metrics"] or report["metrics"]["expected_utility"]["value"] is None
        ),
    ),
)


def summary_contradictions(report: Report, text: str) -> Iterator[str]:
    """What the first paragraph of the page of one model says that does not follow from its JSON."""
    opening = " ".join(text.split("\n\n")[0].split())
    for sentence in re.split(r"\.(?: (?=[A-Z])|$)(?!\d)", opening):
        if not sentence:
            continue
        found = [(fits, match) for form, fits in SENTENCES if (match := re.fullmatch(form, sentence))]
        if not found:
            yield f"not known: {sentence}"
        elif not all(fits(report, match) for fits, match in found):
            yield f"does not follow: {sentence}"
    yield from _columns(report, text)


_COLUMNS = {
    "recalibration": ("gain_recalibration", 1000.0),
    "features": ("gain_beyond", 1000.0),
    "both": ("gain_post_training", 1000.0),
    "Brier score": ("brier", 1.0),
    "log loss": ("log_loss", 1.0),
    "AUC": ("auc", 1.0),
    "accuracy": ("accuracy", 1.0),
    "miscalibration": ("corp_mcb", 1.0),
    "ECE": ("ece", 1.0),
}


def _columns(report: Report, text: str) -> Iterator[str]:
    """Each number of the columns is that of the JSON, and inside its own interval."""
    for name, (key, per) in _COLUMNS.items():
        for line in re.findall(
            rf"(?:^|  +){name}(?: without limit)? +{_AMOUNT}(?=\s|$)", text.partition("\n\n")[2], re.MULTILINE
        ):
            texts = tuple(part or None for part in line)
            if not shows(texts, _flat(report["metrics"][key]), per):
                yield f"{name} is printed as {line}, but is {report['metrics'][key]}"
            if texts[1] is not None and not _number(texts[1]) <= _number(line[0]) <= _number(line[2]):
                yield f"{name} lies outside its interval: {line}"


def grouped_contradictions(document: Mapping[str, Any], text: str) -> Iterator[str]:
    """What the page of one model in groups says that does not follow: its first sentences and each row of the table."""
    whole = next(each for each in document["reports"] if each["group"] is None)
    opening, table, *_ = text.split("\n\n")
    said = re.fullmatch(r"(.*) The table has all rows, and (\d+) groups\.", " ".join(opening.split()))
    if said is None or int(said[2]) != len(document["reports"]) - 1:
        yield "it does not say how many groups there are"
        return
    yield from summary_contradictions(whole, said[1])
    for each in document["reports"]:
        line = re.search(rf"^{re.escape(each['group'] or 'all rows')} +(-?[\d.,].*)$", table, re.MULTILINE)
        if line is None:
            yield f"{each['group']} has no row"
            continue
        numbers = tuple(re.findall(_N, line[1]))
        metrics = [each["metrics"][key] for key in ("expected_utility", "gain_recalibration", "gain_beyond")]
        now, *gains = (_flat(metric) for metric in metrics if metric["value"] is not None)
        gained = tuple(number for gain in gains for number in gain)
        if not shows(numbers[: len(now)], now) or not shows(numbers[-len(gained) :], gained):
            yield f"{line[0]} is not {now}, {gained}"


def several_contradictions(document: Mapping[str, Any], text: str) -> Iterator[str]:
    """What the first sentences on several models say that does not follow."""
    opening = " ".join(text.split("\n\n")[0].split())
    models = {each["model"]: each["metrics"] for each in document["reports"] if each["group"] is None}
    worth = {name: metrics["expected_utility"]["value"] for name, metrics in models.items()}
    regret = {name: metrics["external_regret"]["value"] for name, metrics in models.items()}
    said = re.match(
        rf"Of (\d+) models, (\S+) is worth most: {_AMOUNT} per 1,000 decisions; {CONSTANT} is worth {_N}, "
        rf"perfect knowledge {_N}\. ",
        opening,
    )
    best = max(worth, key=lambda name: worth[name])
    perfect = worth[best] + regret[best] + models[best]["utility_at_stake"]["value"]
    fits = said is not None and (int(said[1]), worth.get(said[2])) == (len(models), worth[best])
    if said is None or not fits or not shows(said.groups()[2:5], _flat(models[said[2]]["expected_utility"])):
        yield "which model is worth most"
        return
    if not shows((said[6],), (worth[best] + regret[best],)) or not shows((said[7],), (perfect,)):
        yield "what the best constant decision and perfect knowledge are worth"
    lose = sorted((name for name in worth if regret[name] >= 0), key=lambda name: -worth[name])
    named = ", ".join(lose[:3]) + (f" and {len(lose) - 3} more" if len(lose) > 3 else "")
    if lose and f"No better than the best constant decision: {named}." not in opening:
        yield f"{named} are no better than a constant decision"
    if not lose and "No better" in opening:
        yield "each is better than a constant decision"
    gains = {name: metrics["gain_recalibration"] for name, metrics in models.items()}
    winning = [name for name, gain in gains.items() if (gain["interval"] or [gain["value"]])[0] > 0]
    of_all = "all of them" if len(winning) == len(gains) else f"{len(winning)} of them" if winning else "none of them"
    whom = r"(\S+)" if len(winning) == 1 else rf"{of_all}(?:, most for (\S+))?"
    most = re.search(rf"Recalibration (?:clearly )?wins for {whom}(?:: {_AMOUNT})?\.", opening)
    if most is None or bool(winning) != bool(most[1]):
        yield f"recalibration wins for {of_all}"
    elif winning:
        first = max(winning, key=lambda name: gains[name]["value"])
        if most[1] != first or not shows(most.groups()[1:], _flat(gains[first])):
            yield f"recalibration wins most for {first}"


def gap_contradictions(document: Mapping[str, Any], text: str, titles: Mapping[str, str]) -> Iterator[str]:
    """What a table of groups that are apart says that does not follow; titles: what the pack calls its metrics."""
    flat = " ".join(text.split())
    for gap in document["pack"]["gaps"]:
        low, _ = gap["interval"] or (0.0, 0.0)
        if gap["clear"] != (low > 0):
            yield f"{gap} is not clear by its interval"
        rows = [f"{gap[side]} ({gap[f'{side}_rows']:,.0f})" for side in ("high", "low")]
        beyond = "yes" if gap["clear"] else "no"
        line = rf"{re.escape(titles[gap['metric']])} {re.escape(rows[0])} {re.escape(rows[1])} {_AMOUNT} {beyond}"
        printed = re.search(line, flat)
        if printed is None or not shows((printed[1],), (gap["difference"],), 1.0):
            yield f"not printed: {gap}"
    for small in document["pack"]["too_small"]:
        if str(small["group"]) not in flat:
            yield f"not listed as too small: {small}"
