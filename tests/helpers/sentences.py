"""The sentences of a page of advice, each with what must hold of the numbers."""

import re
from typing import Any

from decal_cli.learn.held_out import MIN_ISOTONIC_ROWS
from tests.helpers.page import (
    AMOUNT,
    BEYOND,
    CONSTANT,
    NUMBER,
    POST_TRAINING,
    RECALIBRATION,
    ROUNDED,
    SUBJECTS,
    Condition,
    Page,
    all_hold,
    always,
    clear,
    held_back,
    is_open,
    negligible,
    no,
    printed_as,
    says,
    small,
    unknown,
)

Match = re.Match[str]
_WORST = "regret_grouping_worst"


def _now(page: Page, match: Match) -> bool:
    """The action, its method and what it wins after its cost; small where it is clear and within the tolerance."""
    now, measured = page.advice["act_now"], page[page.method_gain(page.advice["act_now"]["method"])]
    action = {"Recalibrate": "recalibrate", "Post-train on the features": "post-train"}[match[1]]
    cost = measured.value - now["gain"]
    small = page.advice["small"] and page.advice["action"] == action
    same = (action, match[2]) == (now["action"], now["method"])
    return same and says(match[3], now["gain"], measured.low - cost, measured.high - cost) and bool(match[4]) == small


def _chance(page: Page, match: Match) -> bool:
    now, certainty = page.advice["act_now"], page.advice["certainty"]
    said = {None: "clear", "likely, but not clear": "likely"}.get(match[3], "open")
    chance = now["chance"]
    percent = f"{100 * chance:.0f}" if 0.005 < chance < 0.995 else "under 1" if chance < 0.5 else "over 99"
    percent = "79" if 0.795 <= chance < 0.8 else percent
    words = said == certainty or (match[3] is None and chance >= 0.975)
    limit = match[1] is None or says(match[1], page.tolerance)
    return limit and match[2] == percent and words and (match[1] is None) == (now["action"] != "done")


def _step(page: Page, match: Match) -> bool:
    """'act from a score of .3 [.2, .4] on instead of .5': what the JSON has as the free step."""
    interim, counts = page.advice["interim"], page.entry["counts"]["threshold"]
    now, low, high, before = (match[name] for name in ("now", "low", "high", "before"))
    if interim is None or not printed_as(now, float(interim["threshold"])) or not printed_as(before, counts["in_use"]):
        return False
    ends = zip((low, high), (min, max), counts["interval"], strict=True)
    near = (abs(float(text) - of(end, float(now))) <= 10.0 ** -len(text.partition(".")[2]) for text, of, end in ends)
    return float(low) <= float(now) <= float(high) and all(near)


def _free(page: Page, match: Match) -> bool:
    """Some of the gain is free: it is clear that it wins, or it may."""
    interim = page.advice["interim"]
    sure = interim is not None and interim["interval"] is not None and interim["interval"][0] > 0
    return (match.groupdict().get("verb", "wins") == "wins") == sure


def _less(page: Page, match: Match) -> bool:
    """Acting on the score is worth less than a constant decision, and chance could explain that."""
    lead = page["external_regret"]
    return lead.value > 0 and (match[3] is not None) == (lead.low <= 0)


def _estimate(page: Page, match: Match) -> bool:
    """Why the best method by the estimates is not used."""
    value = page[page.method_gain(match[1])].value
    if page.advice["act_now"]["action"] != "done" or not says(match[2], value):
        return False
    if "tolerance" in match[3]:
        instead = page.advice["constant"]
        value -= instead["gain"] if instead else 0.0
        return value < page.tolerance / (2 if "half" in match[3] else 1)
    return value >= page.tolerance / 2 if "chance" in match[3] else page[RECALIBRATION].value == value


def _improves(page: Page, match: Match) -> bool:
    names = [name for name in SUBJECTS if re.search(rf"(^|and ){re.escape(name)}", match[1])]
    return bool(names) and all(page.clear(SUBJECTS[name]) for name in names)


def _all_small(page: Page, match: Match) -> bool:
    clear = [metric for metric in (RECALIBRATION, BEYOND) if page.clear(metric)] or [POST_TRAINING]
    most = max(page[metric].high for metric in clear)
    said = most <= 0 if match[1] == "nothing" else most > 0 and says(match[1].removeprefix("at most "), most)
    return said and all(map(page.at_most_small, clear))


def _share(page: Page, match: Match) -> bool:
    """The share of recalibration lies in its interval, and is that of the gains."""
    value, low, high = map(int, match.groups())
    share = page[RECALIBRATION].value / page[POST_TRAINING].value
    return 0 <= low <= value <= high <= 100 and abs(value - 100 * share) <= 0.51


def _holds(page: Page, match: Match) -> bool:
    low, high = page.entry["holds"]
    said = {f"{float(number):.4g}" for number in match.groups() if number}
    return low <= page.entry["task"]["threshold"] <= high and {f"{low:.4g}", f"{high:.4g}"} == said


def _ece(page: Page, match: Match) -> bool:
    gain = page[RECALIBRATION]
    return match[3] == ("wins" if gain.low > 0 else "loses" if gain.high < 0 else "may win or lose")


def _no_better(page: Page, _: Match) -> bool:
    # Several classes have no such share.
    share = page.entry["metrics"].get("utility_share", {"value": 0.0})["value"]
    over = page["gain_over_constant"]
    return share is None or (over.low <= 0 and over.high <= page.tolerance)


def _costs(page: Page, match: Match) -> bool:
    (u00, u01), (u10, u11) = page.entry["task"]["utility"]
    beside = not u00 == u11 == 0
    costs = (u00 - u10, u11 - u01, page.entry["task"]["threshold"])
    return beside == ("beside the right decision" in match[0]) and all(map(printed_as, match.groups(), costs))


def _row_costs(page: Page, match: Match) -> bool:
    """Utilities of each row, in words: a number or a column for each cost, and where their thresholds lie."""
    stated, (low, middle, high) = page.entry["row_task"], page.entry["row_task"]["thresholds"]
    columns = {role: " + ".join(names) for role, names in stated["columns"].items()}
    miss = columns.get("cost_fn", columns.get("amount", stated["cost_fn"]))
    costs = zip(match.groups()[:2], (columns.get("cost_fp", stated["cost_fp"]), miss), strict=True)
    same = all(text == cost if isinstance(cost, str) else printed_as(text, cost) for text, cost in costs)
    return same and all(map(printed_as, match.groups()[2:], (low, high, middle)))


def _action_is(*actions: str) -> Condition:
    return lambda page, _: page.advice["action"] in actions


def _done(page: Page, _: Match) -> bool:
    return page.advice["act_now"]["action"] == "done"


def _without_features(page: Page, _: Match) -> bool:
    return not page.features


_STEP = (
    rf"act from a score of (?:about )?(?P<now>{NUMBER}) \[(?P<low>{NUMBER}), (?P<high>{NUMBER})\] on instead of "
    rf"(?P<before>{NUMBER})"
)
SENTENCES: dict[str, Condition] = {
    # What to do now, and what it wins
    r"(Recalibrate|Post-train on the features) with ([\w-]+) \(a [^)]*\): wins <amount>(, which is clear but "
    r"small)?\.": _now,
    rf"The chance that (?:it wins (?:anything|more than {CONSTANT})(?: after its cost)?|no method wins more than "
    r"the tolerance of <amount>(?: beyond that)?) is (over 99|under 1|\d+) %(?:: (likely, but not clear|open(?:, see "
    r"below what would settle it)?))?\.": _chance,
    r"Whether any method wins(?: more)? is open: see below what would settle it\.": (
        lambda page, _: page.advice["certainty"] == "open" and page.advice["act_now"]["chance"] is None
    ),
    r"Use the model as it is: no method wins anything that matters\.": _action_is("done"),
    r"Use the model as it is: no method is sure enough to win\.": _action_is("cannot-tell"),
    r"Use the model as it is: it is not good enough, and post-training cannot win what is missing\.": _action_is(
        "find-better-features"
    ),
    r"<constant>: that wins <gain external_regret> over acting on the score, and (?:no method .*|even recalibrated, "
    r"the score does no better|it is not good enough.*|the score ranks backwards: a method that keeps its "
    r"order does no better)\.": _done,
    r"By the estimates, ([\w-]+) wins <amount>, (less than (?:half )?the tolerance|and chance could explain that "
    rf"easily|and no more than a constant decision does)(?: more than (?:{CONSTANT}) does)?\.": _estimate,
    rf"Of that, <gain gain_recalibration> is free today: {_STEP}\.": all_hold(_step, _free),
    rf"Free today: {_STEP}, which (?P<verb>wins|may win) <gain gain_recalibration>\.": all_hold(_step, _free),
    rf"For this decision the same is free today: {_STEP}\.": all_hold(
        _step, lambda page, _: page.advice["act_now"]["action"] == "recalibrate"
    ),
    r"As it is, acting on this score is worth <gain external_regret> less than <constant>(; chance could explain "
    r"that)?\.": _less,
    r"As it is, acting on this score is worth no more than <constant>: <worth expected_utility>\.": (
        lambda page, _: abs(page["external_regret"].value) <= ROUNDED
    ),
    rf"A false alarm \(acting at label 0\) costs(?:, beside the right decision,)? ({NUMBER}), a miss \(not acting "
    rf"at label 1\) ({NUMBER}): acting pays from a probability of ({NUMBER})\.": _costs,
    r"A false alarm \(acting at label 0\) costs (\S+), a miss \(not acting at label 1\) (\S+): acting pays from a "
    rf"probability of each row's own, ({NUMBER}) to ({NUMBER}), half of them below ({NUMBER})\.": _row_costs,
    # Question 1
    r"On held-out rows, (.*) wins?: (?:the interval lies|both intervals lie) above 0\.": _improves,
    rf"The gain is small: (at most {AMOUNT}|nothing), within the tolerance of <tolerance>\.": _all_small,
    r"Recalibration wins <most gain_recalibration>, the features <most gain_beyond> on top of it: no more than the "
    r"tolerance, <tolerance>\.": negligible(RECALIBRATION, BEYOND),
    rf"Recalibration wins <most gain_recalibration>, and features <most {_WORST}> even in the worst case; the "
    r"tolerance is <tolerance>\.": all_hold(negligible(RECALIBRATION), small(_WORST)),
    r"What <subject> wins is unknown: it .*": unknown("subject"),
    r"<Subject> wins <most subject>, within the tolerance of <tolerance>\.": negligible("subject"),
    r"<Subject> wins <most subject>, within the tolerance of <tolerance>, by these rows\.": held_back("subject"),
    r"But the best threshold to act from, <low threshold_adjusted> to <high threshold_adjusted>, is clearly not "
    r"<task decision_threshold>, and more rows may show more to win\.": held_back(RECALIBRATION),
    r"But the features clearly say more than the score \(p-value <chance features_pvalue>\), and more rows may show "
    r"more to win\.": held_back(BEYOND),
    r"<Subject> may win nothing, or more than the tolerance of <tolerance>: too few rows to tell\.": is_open("subject"),
    r"What features would add to the score is unknown: none were named\.": _without_features,
    # Question 2
    r"Neither of the two is clear alone, only both together: a method that does both is needed\.": all_hold(
        clear(POST_TRAINING), no(clear, RECALIBRATION, BEYOND)
    ),
    r"Recalibration alone wins <most gain_recalibration>; the features win on top of it\.": all_hold(
        negligible(RECALIBRATION), clear(BEYOND)
    ),
    r"On top of recalibration, the features clearly win; whether recalibration alone wins is unknown\.": all_hold(
        clear(BEYOND), lambda page, _: page.open(RECALIBRATION) or page.held_back(RECALIBRATION)
    ),
    r"Of the gain, (\d+) % \[(\d+), (\d+)\] comes from recalibration\.": _share,
    r"The features add only a small gain, <most gain_beyond>\.": all_hold(
        clear(BEYOND, RECALIBRATION), small(BEYOND), no(small, RECALIBRATION)
    ),
    r"The features clearly add to what recalibration wins\.": clear(RECALIBRATION, BEYOND),
    r"The features clearly say more than the score, and by the estimate they win on top of it, though that gain "
    r"alone is not clear\.": all_hold(
        clear(RECALIBRATION, POST_TRAINING),
        no(clear, BEYOND),
        lambda page, _: page.informative() and page[BEYOND].value > page.tolerance / 2,
    ),
    r"The features win <most gain_beyond> on top of it, within the tolerance\.": all_hold(
        clear(RECALIBRATION), negligible(BEYOND), no(clear, BEYOND)
    ),
    r"Recalibration wins; what features would add is unknown: none were named\.": all_hold(
        clear(RECALIBRATION), _without_features
    ),
    r"Recalibration wins, and it is the cheaper step; whether the features add to it is unknown\.": all_hold(
        clear(RECALIBRATION), no(clear, BEYOND), no(negligible, BEYOND)
    ),
    # Questions 3 and 4, without costs and wishes
    r"Even recalibrated, the score decides no better than a constant decision, which "
    r"is free\.": _no_better,
    r"By the estimates, the constant decision wins as much as post-training or more, and it is free\.": (
        lambda page, _: page[POST_TRAINING].value <= page["external_regret"].value
    ),
    r"No --cost given: compare this gain with your cost\.": always,
    r"No --satisfied-at given: compare this utility with what you need\.": always,
    # What to do next
    r"`decal fit auto` takes a curve with few parameters where that predicts these few rows better\.": (
        lambda page, _: page.entry["rows"] < MIN_ISOTONIC_ROWS and page.advice["method"] in ("isotonic", "platt")
    ),
    r"`decal fit ([\w-]+)` fits it and evaluates it on held-out rows\.": (
        lambda page, match: page.advice["method"] == match[1]
    ),
    r"`decal recommend --try` fits the methods, compares them on held-out rows and starts over with the "
    r"best one\.": always,
    r"About ([\d,]+) rows like these show .* in 4 of 5 cases\.": (
        lambda page, match: int(match[1].replace(",", "")) > page.entry["rows"]
    ),
    r"Add (rows|clusters): recalibration needs .*": unknown(RECALIBRATION),
    r"Name the feature columns( of rows, in files or in an engine)? \(--features\).*": _without_features,
    r"The score ranks backwards: higher scores go with fewer positives \(AUC below \.5\)\.": (
        lambda page, _: page["auc"].high < 0.5
    ),
    r"Check the label column, --positive and the direction of the score\.": (lambda page, _: page["auc"].high < 0.5),
    r"Whether a model on the features beats it is unknown: there are too few rows to tell\.": all_hold(
        no(clear, BEYOND), no(negligible, BEYOND)
    ),
    r"Find features that separate the outcomes better, train a new model, and start over with it\.": _action_is(
        "find-better-features"
    ),
    r"ECE is <number ece> whatever the decision \(<number ece_null> for a calibrated model\); for this one, "
    r"recalibration (wins|loses|may win or lose)\.": _ece,
    r"ECE alone would leave the model as it is\.": (lambda page, _: page.advice["ece_advice"] == "leave"),
    r"ECE alone would advise recalibration: .*\.": (lambda page, _: page.advice["ece_advice"] == "recalibrate"),
    rf"This advice holds for (?:thresholds from ({NUMBER}) to ({NUMBER})|the threshold ({NUMBER}) alone)\.": _holds,
}
"""Of a page without costs."""


def _scores(page: Page) -> dict[str, dict[str, Any]]:
    return {each["method"] or "as it is": each for each in page.entry["at_capacity"]}


def _gain(page: Page, method: str) -> tuple[float, float, float]:
    """What a score wins at the capacity, with its interval."""
    score = _scores(page)[method]
    return score["gain"], *score["interval"]


def _best(page: Page, method: str, kind: str) -> bool:
    gains = {name: each["gain"] for name, each in _scores(page).items() if each["kind"] == kind}
    return gains[method] == max(gain for gain in gains.values() if gain is not None)


def _result(page: Page, words: str, method: str) -> bool:
    """What is said of the gain: chance could explain it, or it clearly wins, or loses."""
    gain, low, high = _gain(page, method)
    if "chance" in words:
        return low <= 0 <= high and says(words, gain, low, high)
    gain, low, high = (gain, low, high) if "wins" in words else (-gain, -high, -low)
    return low > 0 and says(words, gain, low, high)


def _limit(page: Page, match: Match) -> bool:
    """What the limit costs or wins."""
    now, unlimited = _scores(page)["as it is"]["utility"], page["expected_utility"].value
    apart = unlimited - now if match[1] == "costs" else now - unlimited
    return page.entry["places"]["full"] > 0 and apart >= 0 and says(match[2], apart)


def _no_limit(page: Page, _: Match) -> bool:
    unlimited = page["expected_utility"].value
    off = abs(_scores(page)["as it is"]["utility"] - unlimited)
    return page.entry["places"]["full"] == 0 and off < ROUNDED * max(1.0, abs(unlimited))


def _perfect(page: Page, match: Match) -> bool:
    """It is the most that any of the scores wins."""
    most = max(each["gain"] for each in _scores(page).values() if each["gain"] is not None)
    gain = _gain(page, "perfect ranking")
    return gain[0] >= most - ROUNDED and says(match[1], *gain)


def _acts_or_not(page: Page) -> bool:
    """Whether there are two actions, for labels 0 and 1."""
    task, of_rows = page.entry["task"], page.entry.get("row_task")
    if task is not None:
        return len(task["thresholds"]) == 1
    columns = page.entry["columns"]
    return of_rows is not None and "proba" not in columns and len(columns.get("utility_columns", ())) <= 4


def _another_order(page: Page, match: Match) -> bool:
    now, gain = page.entry["ranks_now"], _gain(page, match[2])
    return match[2] == now["method"] and now["gain"] == gain[0] > 0 and says(match[3], *gain)


def _chance_at_capacity(page: Page, match: Match) -> bool:
    """It is 97.5 % or more where the interval lies above 0, and more than half where the gain does."""
    chance = page.entry["ranks_now"]["chance"]
    _, low, high = _gain(page, page.entry["ranks_now"]["method"])
    said = {"over 99": chance >= 0.995}.get(match[1], match[1] == f"{100 * chance:.0f}")
    return said and chance > 0.5 and ((low > 0) == (chance > 0.975) or low == high)


def _idle(page: Page, match: Match) -> bool:
    """Acting on no row is worth more than the order of the score, and no less than what gives the places."""
    won = page["eu_never"].value - page["utility_at_capacity"].value
    return says(match[1], won) and won > 0 and won >= page.entry["ranks_now"]["gain"] - 1e-9


def _without_orders(page: Page, _: Match) -> bool:
    return all(each["gain"] is None for each in _scores(page).values() if each["kind"] == "post-training")


_RESULT = rf"(its gain is {AMOUNT}, which chance could explain|it (?:wins|loses) {AMOUNT})"
_ORDER = r"Recalibration keeps the order of the scores, and changes only which of them reach <task threshold>"
AT_CAPACITY: dict[str, Condition] = {
    r"At capacity <capacity>, act on the rows that the score puts first: no method is sure enough to win more\.": (
        lambda page, _: page.entry["ranks_now"] == {"method": None, "gain": 0, "chance": None}
    ),
    r"At capacity <capacity>, act on the rows that (\S+) puts first: wins <amount> over the order of "
    r"the score\.": _another_order,
    r"The chance that this wins anything is (over 99|\d+) %\.": _chance_at_capacity,
    r"At capacity <capacity>, act on no row: that wins <amount> over the order of the score, and no method is known to "
    r"win more\.": _idle,
    r"At capacity <capacity>\.": always,
    r"All else on this page is of decisions without this limit\.": always,
    r"The gain of recalibration is estimated there with the calibrator that suits each fold best, here with one in all "
    r"folds\.": lambda page, _: any(
        each["kind"] == "recalibration" and each["gain"] is not None for each in _scores(page).values()
    ),
    rf"The limit (costs|wins) ({NUMBER} per 1,000 decisions)\.": _limit,
    r"Every row that the score as it is acts on has a place, so that the limit costs it nothing\.": _no_limit,
    r"A perfect ranking, by the labels, would win <amount> with these places; no method can win more\.": all_hold(
        _perfect, lambda page, _: _acts_or_not(page)
    ),
    r"A perfect ranking, by the labels, would win <amount> with these places; which action a row gets stays as it is"
    r"\.": all_hold(_perfect, lambda page, _: not _acts_or_not(page)),
    rf"Recalibration by (\S+) changes what acting is expected to win, and so the order: {_RESULT}\.": (
        lambda page, match: _best(page, match[1], "recalibration") and _result(page, match[2], match[1])
    ),
    r"What features would win with these places is unknown\.": all_hold(
        _without_orders, lambda page, _: page.entry["task"] is None
    ),
    rf"{_ORDER}: on the rows with a place, that changes nothing\.": (
        lambda page, _: _scores(page)["isotonic"]["gain"] == 0
    ),
    rf"{_ORDER}: {_RESULT}\.": (lambda page, match: _result(page, match[2], "isotonic")),
    rf"Of the post-trained scores, (.+?) is worth most: {_RESULT}\.": (
        lambda page, match: _best(page, match[1], "post-training") and _result(page, match[2], match[1])
    ),
    r"Only another order, such as one that features give, finds other rows\.": _without_orders,
}
"""Of a page in which so many rows can be acted on only."""
