"""The sentences of a page of advice, each with what must hold of the numbers."""

import math
import re
from collections.abc import Callable

from decal_cli.learn.held_out import MIN_ISOTONIC_ROWS
from tests.helpers.page import BEYOND, NUMBER, POST_TRAINING, RECALIBRATION, ROUNDED, SUBJECTS, Page, printed_as

Condition = Callable[[Page, "re.Match[str]"], bool]
AMOUNT = rf"({NUMBER[1:-1]}(?: \[{NUMBER[1:-1]}, {NUMBER[1:-1]}\])?(?: million| billion)? per 1,000 decisions)"
"""An amount, perhaps with its interval, as one group."""


def says(text: str, *values: float) -> bool:
    """Whether an amount is these values, times 1,000; the value lies within the ends as they are printed."""
    numbers = re.findall(NUMBER, text.replace("per 1,000 decisions", ""))
    printed = [float(number.replace(",", "")) for number in numbers]
    inside = len(printed) < 3 or printed[1] <= printed[0] <= printed[2]
    size = 1e9 if " billion " in text else 1e6 if " million " in text else 1.0
    known = [1000 * value / size for value in values if not math.isnan(value)]
    return inside and len(numbers) == len(known) and all(map(printed_as, numbers, known))


def _gain(page: Page, text: str, metric: str) -> bool:
    return says(text, *page[metric])


def _tolerance(page: Page, text: str) -> bool:
    return says(text, page.tolerance)


def _end(page: Page, words: str, metric: str) -> bool:
    """'at most 5 per 1,000 decisions': the upper end of the interval; 'nothing', where that is not above 0."""
    high = page[metric].high
    return high <= 0 if words == "nothing" else high > 0 and says(words.removeprefix("at most "), high)


def _now_gain(page: Page) -> tuple[float, float, float]:
    """Of the action that is named, after its cost."""
    now, measured = page.advice["act_now"], page[page.method_gain(page.advice["act_now"]["method"])]
    cost = measured.value - now["gain"]
    return now["gain"], measured.low - cost, measured.high - cost


def _now(page: Page, match: re.Match[str]) -> bool:
    """The action, its method and what it wins; small where it is clear and within the tolerance."""
    now = page.advice["act_now"]
    action = {"Recalibrate": "recalibrate", "Post-train on the features": "post-train"}[match[1]]
    small = page.advice["small"] and page.advice["action"] == action
    same = (action, match[2]) == (now["action"], now["method"])
    return same and says(match[3], *_now_gain(page)) and (match[4] is not None) == small


def _percent_of(chance: float) -> str:
    if 0.005 <= chance < 0.995:
        return f"{100 * chance:.0f}"
    return "under 1" if chance < 0.5 else "over 99"


def _chance(page: Page, match: re.Match[str]) -> bool:
    now, sure = page.advice["act_now"], {None: "clear", "likely, but not clear": "likely"}.get(match[3], "open")
    certainty = page.advice["certainty"]
    words = sure == certainty or (match[3] is None and now["chance"] >= 0.975)
    limit = match[1] is None or _tolerance(page, match[1])
    return (
        limit and match[2] == _percent_of(now["chance"]) and words and (match[1] is None) == (now["action"] != "done")
    )


def _better_constant(page: Page, words: str) -> bool:
    never, always = page["eu_never"].value, page["eu_always"].value
    if math.isnan(never):
        return words.lower() in (
            f"always {verb} '{page.advice['constant']['decision']}'" for verb in ("decide", "deciding")
        )
    return words.lower() in (("always act", "always acting") if always > never else ("never act", "never acting"))


def _threshold(page: Page, match: re.Match[str], start: int) -> bool:
    """'act from a score of .3 [.2, .4] on instead of .5': what the JSON has as the free step."""
    interim, counts = page.advice["interim"], page.entry["counts"]["threshold"]
    if (
        interim is None
        or not printed_as(match[start], float(interim["threshold"]))
        or not printed_as(match[start + 3], counts["in_use"])
    ):
        return False
    low, high = float(match[start + 1]), float(match[start + 2])
    slack = [10.0 ** -len(match[start + k].partition(".")[2]) for k in (1, 2)]
    ends = counts["interval"]
    near = (
        abs(low - min(ends[0], float(match[start]))) <= slack[0]
        and abs(high - max(ends[1], float(match[start]))) <= slack[1]
    )
    return low <= float(match[start]) <= high and near


def _free(page: Page, match: re.Match[str]) -> bool:
    """Some of the gain is free: it is clear that it wins, or it may."""
    interim = page.advice["interim"]
    sure = interim is not None and interim["interval"] is not None and interim["interval"][0] > 0
    amount, start = (match[1], 2) if match.re.pattern.startswith("Of") else (match[6], 1)
    verb = "wins" if start == 2 else match[5]
    return _threshold(page, match, start) and _gain(page, amount, RECALIBRATION) and (verb == "wins") == sure


def _less(page: Page, match: re.Match[str]) -> bool:
    lead = page["external_regret"]
    doubt = match[3] is not None
    return lead.value > 0 and _better_constant(page, match[2]) and says(match[1], *lead) and doubt == (lead.low <= 0)


def _always_free(page: Page, match: re.Match[str]) -> bool:
    lead = page["external_regret"]
    return page.advice["act_now"]["action"] == "done" and _better_constant(page, match[1]) and says(match[2], *lead)


def _estimate(page: Page, match: re.Match[str]) -> bool:
    """Why the best method by the estimates is not used."""
    value = page[page.method_gain(match[1])].value
    if page.advice["act_now"]["action"] != "done" or not says(match[2], value):
        return False
    if "tolerance" in match[3]:
        return value < page.tolerance / (2 if "half" in match[3] else 1)
    return value >= page.tolerance / 2 if "chance" in match[3] else page[RECALIBRATION].value == value


def _improves(page: Page, match: re.Match[str]) -> bool:
    names = [name for name in SUBJECTS if re.search(rf"(^|and ){re.escape(name)}", match[1])]
    return bool(names) and all(page.clear(SUBJECTS[name]) for name in names)


def _all_small(page: Page, match: re.Match[str]) -> bool:
    clear = [metric for metric in (RECALIBRATION, BEYOND) if page.clear(metric)] or [POST_TRAINING]
    most = max(clear, key=lambda metric: page[metric].high)
    return _end(page, match[1], most) and _tolerance(page, match[2]) and all(map(page.at_most_small, clear))


def _share(page: Page, match: re.Match[str]) -> bool:
    """The share of recalibration lies in its interval, and is that of the gains."""
    value, low, high = map(int, match.groups())
    share = page[RECALIBRATION].value / page[POST_TRAINING].value
    return 0 <= low <= value <= high <= 100 and abs(value - 100 * share) <= 0.51


def _holds(page: Page, match: re.Match[str]) -> bool:
    low, high = page.entry["holds"]
    said = [float(number) for number in match.groups() if number]
    return low <= page.entry["task"]["threshold"] <= high and {f"{low:.4g}", f"{high:.4g}"} == {
        f"{x:.4g}" for x in said
    }


def _ece(page: Page, match: re.Match[str]) -> bool:
    gain = page[RECALIBRATION]
    expected = "wins" if gain.low > 0 else "loses" if gain.high <= 0 else "may win or lose"
    return (
        printed_as(match[1], page["ece"].value)
        and printed_as(match[2], page["ece_null"].value)
        and match[3] == expected
    )


def _no_better(page: Page, _: re.Match[str]) -> bool:
    # Several classes have no such share.
    share = page.entry["metrics"].get("utility_share", {"value": 0.0})["value"]
    over = page["gain_over_constant"]
    return share is None or (over.low <= 0 and over.high <= page.tolerance)


def _action_is(*actions: str) -> Condition:
    return lambda page, _: page.advice["action"] in actions


def _always(_: Page, __: re.Match[str]) -> bool:
    return True


def _costs(page: Page, match: re.Match[str]) -> bool:
    (u00, u01), (u10, u11) = page.entry["task"]["utility"]
    pays, beside = page.entry["task"]["threshold"], not u00 == u11 == 0
    return beside == ("beside the right decision" in match[0]) and all(
        map(printed_as, match.groups(), (u00 - u10, u11 - u01, pays))
    )


def _row_costs(page: Page, match: re.Match[str]) -> bool:
    """Utilities of each row, in words: a number or a column for each cost, and where their thresholds lie."""
    stated, (low, middle, high) = page.entry["row_task"], page.entry["row_task"]["thresholds"]
    columns = {role: " + ".join(names) for role, names in stated["columns"].items()}
    miss = columns.get("cost_fn", columns.get("amount", stated["cost_fn"]))
    costs = zip(match.groups()[:2], (columns.get("cost_fp", stated["cost_fp"]), miss), strict=True)
    same = all(text == cost if isinstance(cost, str) else printed_as(text, cost) for text, cost in costs)
    return same and all(map(printed_as, match.groups()[2:], (low, high, middle)))


CONSTANT = r"(?i:always act(?:ing)?|never act(?:ing)?|always decid(?:e|ing) '[^']*')"
MOST = rf"(at most {AMOUNT[1:-1]}|nothing)"
SUBJECT = "(recalibration|using the features on top of recalibration)"
STEP = rf"act from a score of (?:about )?({NUMBER[1:-1]}) \[{NUMBER}, {NUMBER}\] on instead of {NUMBER}"
SENTENCES: dict[str, Condition] = {
    # What to do now, and what it wins
    rf"(Recalibrate|Post-train on the features) with ([\w-]+) \(a [^)]*\): wins {AMOUNT}"
    r"(, which is clear but small)?\.": _now,
    rf"The chance that (?:it wins (?:anything|more than {CONSTANT})(?: after its cost)?|no method wins more than the "
    rf"tolerance of {AMOUNT}(?: beyond that)?) is "
    r"(over 99|under 1|\d+) %(?:: (likely, but not clear|open, see below what would settle it))?\.": _chance,
    r"Whether any method wins is open: see below what would settle it\.": (
        lambda page, _: page.advice["certainty"] == "open" and page.advice["act_now"]["chance"] is None
    ),
    r"Use the model as it is: no method wins anything that matters\.": _action_is("done"),
    r"Use the model as it is: no method is sure enough to win\.": _action_is("cannot-tell"),
    r"Use the model as it is: it is not good enough, and post-training cannot win what is missing\.": (
        _action_is("find-better-features")
    ),
    rf"({CONSTANT}): that wins {AMOUNT} over acting on the score, and (?:no method .*|even recalibrated, the "
    r"score does no better|it is not good enough.*)\.": _always_free,
    rf"By the estimates, ([\w-]+) wins {AMOUNT}, (less than (?:half )?the tolerance|and chance could explain that "
    r"easily|and no more than a constant decision does)\.": _estimate,
    rf"Of that, {AMOUNT} is free today: {STEP}\.": _free,
    rf"Free today: {STEP}, which (wins|may win) {AMOUNT}\.": _free,
    rf"For this decision the same is free today: {STEP}\.": (
        lambda page, match: _threshold(page, match, 1) and page.advice["act_now"]["action"] == "recalibrate"
    ),
    rf"As it is, acting on this score is worth {AMOUNT} less than ({CONSTANT})"
    r"(; chance could explain that)?\.": _less,
    rf"As it is, acting on this score is worth no more than ({CONSTANT}): {AMOUNT}\.": (
        lambda page, match: (
            abs(page["external_regret"].value) <= ROUNDED
            and _better_constant(page, match[1])
            and says(match[2], page["expected_utility"].value)
        )
    ),
    rf"A false alarm \(acting at label 0\) costs(?:, beside the right decision,)? {NUMBER}, "
    rf"a miss \(not acting at label 1\) {NUMBER}: acting pays "
    rf"from a probability of {NUMBER}\.": _costs,
    rf"A false alarm \(acting at label 0\) costs (\S+), a miss \(not acting at label 1\) (\S+): acting pays from a "
    rf"probability of each row's own, {NUMBER} to {NUMBER}, half of them below {NUMBER}\.": _row_costs,
    # Question 1
    r"On held-out rows, (.*) wins?: the interval lies above 0\.": _improves,
    rf"The gain is small: {MOST}, within the tolerance of {AMOUNT}\.": _all_small,
    rf"Recalibration wins {MOST}, the features {MOST} on top of it: no more than the tolerance, {AMOUNT}\.": (
        lambda page, match: (
            _end(page, match[1], RECALIBRATION)
            and _end(page, match[2], BEYOND)
            and _tolerance(page, match[3])
            and page.negligible(RECALIBRATION)
            and page.negligible(BEYOND)
        )
    ),
    rf"Recalibration wins {MOST}, and features {MOST} even in the worst case; the tolerance is {AMOUNT}\.": (
        lambda page, match: (
            _end(page, match[1], RECALIBRATION)
            and _end(page, match[2], "regret_grouping_worst")
            and _tolerance(page, match[3])
            and page.negligible(RECALIBRATION)
            and page.at_most_small("regret_grouping_worst")
        )
    ),
    rf"What {SUBJECT} wins is unknown: it .*": lambda page, match: math.isnan(page[SUBJECTS[match[1]]].low),
    rf"(?i:{SUBJECT}) wins {MOST}, within the tolerance of {AMOUNT}\.": (
        lambda page, match: (
            _end(page, match[2], SUBJECTS[match[1].lower()])
            and _tolerance(page, match[3])
            and page.negligible(SUBJECTS[match[1].lower()])
        )
    ),
    rf"(?i:{SUBJECT}) wins {MOST}, within the tolerance of {AMOUNT}, by these rows\.": (
        lambda page, match: (
            _end(page, match[2], SUBJECTS[match[1].lower()])
            and _tolerance(page, match[3])
            and page.held_back(SUBJECTS[match[1].lower()])
        )
    ),
    rf"But the best threshold to act from, {NUMBER} to {NUMBER}, is clearly not {NUMBER}, and more rows may show "
    r"more to win\.": (
        lambda page, match: (
            page.held_back(RECALIBRATION)
            and all(map(printed_as, match.groups()[:2], page["threshold_adjusted"][1:]))
            and printed_as(match[3], page.entry["task"]["decision_threshold"])
        )
    ),
    rf"But the features clearly say more than the score \(p-value {NUMBER}\), and more rows may show more to win\.": (
        lambda page, match: page.held_back(BEYOND) and printed_as(match[1], page["features_pvalue"].value)
    ),
    rf"(?i:{SUBJECT}) may win nothing, or more than the tolerance of {AMOUNT}: too few rows to tell\.": (
        lambda page, match: _tolerance(page, match[2]) and page.open(SUBJECTS[match[1].lower()])
    ),
    r"What features would add to the score is unknown: none were named\.": lambda page, _: not page.features,
    # Question 2
    r"Neither of the two is clear alone, only both together: a method that does both is needed\.": (
        lambda page, _: page.clear(POST_TRAINING) and not page.clear(RECALIBRATION) and not page.clear(BEYOND)
    ),
    rf"Recalibration alone wins {MOST}; the features win on top of it\.": (
        lambda page, match: (
            _end(page, match[1], RECALIBRATION) and page.negligible(RECALIBRATION) and page.clear(BEYOND)
        )
    ),
    r"The features clearly win; whether recalibration alone wins is unknown\.": (
        lambda page, _: page.clear(BEYOND) and (page.open(RECALIBRATION) or page.held_back(RECALIBRATION))
    ),
    r"Of the gain, (\d+) % \[(\d+), (\d+)\] comes from recalibration\.": _share,
    rf"The features add only a small gain, {MOST}\.": (
        lambda page, match: (
            _end(page, match[1], BEYOND)
            and page.clear(RECALIBRATION)
            and page.clear(BEYOND)
            and page.at_most_small(BEYOND)
            and not page.at_most_small(RECALIBRATION)
        )
    ),
    r"The features clearly add to what recalibration wins\.": (
        lambda page, _: page.clear(RECALIBRATION) and page.clear(BEYOND)
    ),
    r"The features clearly say more than the score, and by the estimate they win on top of it, though that gain alone "
    r"is not clear\.": (
        lambda page, _: (
            page.informative()
            and page.clear(RECALIBRATION)
            and page.clear(POST_TRAINING)
            and not page.clear(BEYOND)
            and page[BEYOND].value > page.tolerance / 2
        )
    ),
    rf"The features win {MOST} on top of it, within the tolerance\.": (
        lambda page, match: (
            _end(page, match[1], BEYOND)
            and page.clear(RECALIBRATION)
            and page.negligible(BEYOND)
            and not page.clear(BEYOND)
        )
    ),
    r"Recalibration wins; what features would add is unknown: none were named\.": (
        lambda page, _: page.clear(RECALIBRATION) and not page.features
    ),
    r"Recalibration wins, and it is the cheaper step; whether the features add to it is unknown\.": (
        lambda page, _: page.clear(RECALIBRATION) and not page.clear(BEYOND) and not page.negligible(BEYOND)
    ),
    # Questions 3 and 4, without costs and wishes
    r"Even recalibrated, the score decides no better at any threshold than a constant decision, which is free\.": (
        _no_better
    ),
    r"By the estimates, the constant decision wins as much as post-training or more, and it is free\.": (
        lambda page, _: page[POST_TRAINING].value <= page["external_regret"].value
    ),
    r"No --cost given: compare this gain with your cost\.": _always,
    r"No --satisfied-at given: compare this utility with what you need\.": _always,
    # What to do next
    r"`decal fit auto` takes a curve with few parameters where that predicts these few rows better\.": (
        lambda page, m: page.entry["rows"] < MIN_ISOTONIC_ROWS and page.advice["method"] in ("isotonic", "platt")
    ),
    r"`decal fit ([\w-]+)` fits it and evaluates it on held-out rows\.": (
        lambda page, match: page.advice["method"] == match[1]
    ),
    r"`decal recommend --try` fits the methods, compares them on held-out rows and starts over with the best one\.": (
        _always
    ),
    r"About ([\d,]+) rows like these show .* in 4 of 5 cases\.": (
        lambda page, match: int(match[1].replace(",", "")) > page.entry["rows"]
    ),
    r"(Name the feature columns|Give rows instead of counts, and name their feature columns) \(--features\).*": (
        lambda page, _: not page.features
    ),
    r"The score ranks backwards: higher scores go with fewer positives \(AUC below \.5\)\.": (
        lambda page, _: page["auc"].high < 0.5
    ),
    r"Check the label column, --positive and the direction of the score\.": lambda page, _: page["auc"].high < 0.5,
    r"Whether a model on the features beats it is unknown: there are too few rows to tell\.": (
        lambda page, _: not page.clear(BEYOND) and not page.negligible(BEYOND)
    ),
    r"Find features that separate the outcomes better, train a new model, and start over with it\.": (
        _action_is("find-better-features")
    ),
    rf"ECE is {NUMBER} whatever the decision \({NUMBER} for a calibrated model\); for this one, recalibration "
    r"(wins|loses|may win or lose)\.": _ece,
    r"ECE alone would leave the model as it is\.": lambda page, _: page.advice["ece_advice"] == "leave",
    r"ECE alone would advise recalibration: .*\.": lambda page, _: page.advice["ece_advice"] == "recalibrate",
    rf"This advice holds for (?:thresholds from {NUMBER} to {NUMBER}|the threshold {NUMBER} alone)\.": _holds,
}
"""The sentences of a page without costs, each with what must hold of the numbers."""
