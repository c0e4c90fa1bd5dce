"""The statement that counts scores where the rows are: plain SQL, which finds what is wrong with rows as well.

Its result is an aggregate, which `decal evaluate FILE --aggregated` reads. The columns are groups and cluster, as
texts; `model`, where there are several scores; then levels, one row for each score, or cells, one row for each cell and
label; then `bad` and `value`. The constants below say what each column holds, and docs/large-data.md says it for users.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from decal_cli.data.large.engines.dialects import Dialect, label_of, logistic, other_label
from decal_cli.errors import DecalError
from decal_cli.hints import Hint
from decal_cli.tables.cells import GRID, MAX_SPLITS
from decal_cli.tables.pairs import PAIR_GRID

# Levels have a row for each (groups, cluster, model, score), and cells one for each (groups, model, cell, label). n is
# a sum of weights, and rows a number of rows. The cell of a score s is floor(65536 s) plus the number of thresholds
# that s reaches: it grows with the score, and every threshold is an edge. low and high are its edges, and s < high
# unless both are 1. l1 and l2 are Infinity where a score of 0 or 1 is wrong. With clusters the same columns come again
# for each cluster in coarse cells; the cells themselves have NULL for the cluster. Pairs have 256 cells a side; sums of
# the difference in log loss are 0 where one of the two losses is infinite.
#
# Rows that count scores have NULL in `bad` and `value`. Rows that are wrong are counted in rows of their own, where the
# score or the cell is NULL: `bad` is a text of PROBLEMS, `value` an example, and `rows`, or without weights in levels
# `n`, says how many they are. `aggregates.sound` takes them out, or raises the error.
SIDES = ("_a", "_b")
"""The ends of the names of the columns of A and of B."""
ENDS = ("min_score", "max_score")
"""The least and the greatest score of a cell's rows."""
BY_CLUSTER = "by_cluster"
"""1 where rows are those of one cluster in a coarse cell, and are counted by cells too; else 0."""
SUMS = ("n", "s1", "s2", "s3", "s4", "l1", "l2")
"""Columns of sums: of w, of w times powers of the score, of w times the log loss and its square."""
SQUARES = ("n2", "q1", "q2", "q3", "q4", "k1", "k2")
"""Columns of the sums in SUMS, with squared weights."""
DIFFERENCES, SQUARED_DIFFERENCES = ("d1", "d2", "e1", "e2"), ("g1", "g2", "f1", "f2")
"""Columns of pairs: sums of differences in loss between B and A, and those sums with squared weights."""
SQUARED = dict(zip(("pos", *SUMS, *DIFFERENCES), ("pos2", *SQUARES, *SQUARED_DIFFERENCES), strict=True))
"""The column with squared weights that belongs to each column with weights."""
OF_ROWS = ("n", "pos", "n2", "pos2", "rows", "rows_pos", "label")
"""Columns about a row, not about one of its scores."""
_OF_SCORES = ("score", "cell", "low", "high", *SUMS[1:], *SQUARES[1:])
NUMBERS = frozenset(
    {*OF_ROWS, *_OF_SCORES, *(name + side for name in _OF_SCORES for side in SIDES)}
    | {*DIFFERENCES, *SQUARED_DIFFERENCES, *ENDS, BY_CLUSTER}
)
RESERVED = NUMBERS | {"model", *(f"model{side}" for side in SIDES), "bad", "value"}
"""Names of columns of an aggregate, which no column of groups can have."""
N_SPLITS = 3
"""How fine coarse cells are by default: 209 of them, and one more for each threshold."""


@dataclass(frozen=True)
class Problem:
    """A kind of fault that a row can have.

    role: that of the column at fault. condition: when a row has the fault, in SQL. value: the value that is shown, ''
    for a missing one. text: the error after the name of the column, with {value} and {times}. fix: what to do about
    it. needs: what the request must name for the fault to be looked for, '' for nothing.
    """

    role: str
    condition: str
    value: str = ""
    text: str = ""
    fix: str = ""
    needs: str = ""


BAD, VALUE = "bad", "value"
"""The columns that say what is wrong."""
PROBLEMS = {
    "score outside [0, 1]": Problem(
        "score",
        "{outside}",
        "score",
        "score {value} is outside [0, 1]{times}",
        "name a column of probabilities, or correct the rows",
    ),
    "label never positive": Problem(
        "label",
        "decal_never = 1",
        "other",
        "label is never the positive value, it is {value}",
        f"correct {Hint('positive')}",
        "positive",
    ),
    "label of a third value": Problem(
        "label",
        "decal_label < 0 OR decal_label > 1",
        "label",
        "label is {value}{times}, and a label is 0 or 1, or has two values",
        f"say which counts as 1 with {Hint('positive')}, correct it or name another column",
    ),
    "weight not positive and finite": Problem(
        "weight",
        "NOT (decal_weight > 0 AND decal_weight < {infinite})",
        "weight",
        "weight {value} is not positive and finite{times}",
        "correct the weight or remove the row",
        "weight",
    ),
    "missing label": Problem("label", "decal_label IS NULL"),
    "missing score": Problem("score", "{absent}"),
    "missing weight": Problem("weight", "decal_weight IS NULL", needs="weight"),
    "missing cluster": Problem("cluster", "{cluster} IS NULL OR {cluster} = ''", needs="cluster"),
}
"""Every kind of fault by its text in the column `bad`, the worst first: a row gets one. What is missing comes last."""


def has_cells(names: Sequence[str]) -> bool:
    """Whether an aggregate of these columns holds cells, and not levels."""
    return "cell" in names or f"cell{SIDES[0]}" in names


def has_pairs(names: Sequence[str]) -> bool:
    """Whether an aggregate of these columns counts rows by the scores of two models."""
    return any(f"{name}{SIDES[0]}" in names for name in ("score", "cell"))


def types_of(names: Sequence[str]) -> dict[str, str]:
    """The types of the columns of an aggregate, as Arrow calls them."""
    whole = {"cell", "label", "rows", "rows_pos", BY_CLUSTER, *(f"cell{side}" for side in SIDES)}
    if not has_cells(names) and "n2" not in names:
        whole |= {"n", "pos"}
    return {name: "string" if name not in NUMBERS else "int64" if name in whole else "float64" for name in names}


@dataclass(frozen=True)
class CountRequest:
    """What is counted: the rows of a table, or of a query, by score. Errors: DecalError, where it cannot be put.

    positive: the label that counts as 1; "": labels are 0/1 or true/false. thresholds: edges of cells. pairs: whether
    rows are counted by two scores at once. logit: whether scores are log-odds. splits: how fine the coarse cells of
    clusters are. whole_labels: labels are whole numbers, and no texts. by_weight: the rows of a level have one weight.
    """

    score: tuple[str, ...]
    label: str
    table: str = ""
    query: str = ""
    positive: str = ""
    weight: str = ""
    group: tuple[str, ...] = ()
    cells: bool = False
    thresholds: tuple[float, ...] = ()
    cluster: str = ""
    pairs: bool = False
    logit: bool = False
    splits: int = N_SPLITS
    whole_labels: bool = False
    by_weight: bool = False

    def __post_init__(self) -> None:
        for name in self.score:
            if "*" in name:
                raise DecalError(
                    f"score {name!r} is a pattern, and a statement names columns", f"name each with {Hint('score')}"
                )
        if len(set(self.score)) < len(self.score):
            raise DecalError("a score is named twice", "name each once")
        if self.pairs and len(self.score) != 2:
            raise DecalError(
                f"pairs are of two scores, and {len(self.score)} {'is' if len(self.score) == 1 else 'are'} named",
                f"name two with {Hint('score')}",
            )
        if self.cells and self.pairs and self.cluster:
            raise DecalError(
                "clusters of two scores are counted by every pair of scores, and cells of both do not hold them",
                f"round the scores in {Hint('query')}, or draw a sample of clusters",
            )
        for name in self.texts:
            if name.lower() in RESERVED:
                role = "group" if name in self.group else "cluster"
                raise DecalError(
                    f"the {role} {name!r} has the name of a column of the result",
                    f'rename it: {Hint("query")} \'select *, "{name}" as "{role}_{name}" from ...\'',
                )
        for threshold in self.thresholds:
            if not 0 <= threshold <= 1:
                raise DecalError(f"threshold {threshold:g} is not in [0, 1]", f"correct {Hint('threshold')}")

    @property
    def edges(self) -> list[float]:
        """The thresholds in order."""
        return sorted(set(self.thresholds))

    @property
    def by_cluster(self) -> bool:
        """Whether clusters are counted by coarse cells, beside the cells of all rows."""
        return self.cells and self.cluster not in ("", *self.group)

    @property
    def texts(self) -> dict[str, str]:
        """Columns of the user by which rows are counted, and what the statement calls them."""
        ours = {name: f"decal_g{number}" for number, name in enumerate(self.group, 1)}
        return ours if self.cluster in ("", *ours) else {**ours, self.cluster: "decal_c"}

    @property
    def scores(self) -> list[str]:
        """What the statement calls the columns of scores."""
        return [f"decal_s{number}" for number in range(1, len(self.score) + 1)]

    @property
    def sides(self) -> Sequence[str]:
        """What the names of a score's columns end with, of each score by which one row is counted at once."""
        return SIDES if self.pairs else ("",)

    @property
    def models(self) -> list[str]:
        """The column of the model's number, where each row is counted once for each of several."""
        return ["decal_model"] if len(self.score) > 1 and not self.pairs else []


def select(columns: Sequence[str], source: str) -> str:
    """A query of these columns, one on each line."""
    return "    SELECT\n" + ",\n".join(f"        {each}" for each in columns) + f"\n    FROM {source}"


def source_of(table: str, query: str, dialect: Dialect) -> str:
    """What stands after FROM: a table or a query, one of which is named. Errors: DecalError."""
    if bool(table) == bool(query):
        raise DecalError("rows come from one table or from one query", f"name a table, or give {Hint('query')}")
    if table:
        return dialect.table(table)
    # On lines of its own, so that a comment at its end comments out nothing of ours.
    text = query.strip().rstrip(";")
    if "\0" in text or text != text.encode(errors="ignore").decode():
        raise DecalError(f"{Hint('query')} is not text in UTF-8", "correct it")
    return f"(\n{text}\n    ) AS decal_query"


def size_of(request: CountRequest, dialect: Dialect, most: int | None = None) -> str:
    """The statement that counts rows, and about how many texts they have; of the first rows, scores and weights too."""
    source, columns = source_of(request.table, request.query, dialect), [*map(dialect.name, request.texts)]
    if most is not None:
        weight = [request.weight] if request.by_weight and request.weight else []
        columns = [*map(dialect.name, request.score), *columns, *map(dialect.name, weight)]
        head = f"    SELECT {', '.join(dict.fromkeys(columns))} FROM {source}\n    LIMIT {most}"
        source = f"(\n{head}\n) AS decal_head"
    distinct = [f"{dialect.distinct.format(value=each)} AS decal_{at}" for at, each in enumerate(columns)]
    return f"SELECT {', '.join(['COUNT(*) AS decal_rows', *distinct])} FROM {source}"


def statement(request: CountRequest, dialect: Dialect) -> str:
    """The statement, which ends without a semicolon. Errors: DecalError, where the request cannot be put."""
    return _Statement(**vars(request), dialect=dialect).text()


@dataclass(frozen=True)
class _Statement(CountRequest):
    """The SQL of a request, part by part: rows as given, with labels 0 or 1, judged, placed in cells, counted."""

    dialect: Dialect = field(kw_only=True)

    @property
    def grid(self) -> int:
        """The number of cells of equal width."""
        return PAIR_GRID if self.pairs else GRID

    @property
    def weighted(self) -> bool:
        """Whether rows have weights."""
        return bool(self.weight)

    @property
    def keys(self) -> list[str]:
        """What rows are counted by beside their scores."""
        return [*self.texts.values(), *self.models]

    def text(self) -> str:
        parts = {"decal_given": select([*self._given()], source_of(self.table, self.query, self.dialect))}
        if self.positive:
            # Read by itself, not by way of decal_given: Postgres would write down what is read twice.
            labels = select([self._label()], source_of(self.table, self.query, self.dialect))
            source = f"(\n{labels}\n    ) AS decal_all"
            parts["decal_labels"] = other_label("decal_y", self.positive, source, self.dialect)
        if self.models:
            numbers = range(1, len(self.score) + 1)
            each = "\n    UNION ALL SELECT ".join(f"{at} AS decal_model" for at in numbers)
            parts["decal_models"] = f"    SELECT {each}"
        parts["decal_scored"] = self._scored()
        parts["decal_judged"] = select(["decal_scored.*", f"{self._bad()} AS decal_bad"], "decal_scored")
        parts["decal_rows"] = select([*self._rows()], "decal_judged")
        how = dict.fromkeys(_TAKEN_APART, self.dialect.written)
        if self.cells:
            parts["decal_sized"] = select(["decal_rows.*", *self._sized()], "decal_rows")
            parts["decal_placed"] = select(["decal_sized.*", *self._losses()], "decal_sized")
        if self.by_cluster:
            # What is read twice is not written down: it is every row.
            how["decal_placed"] = self.dialect.read_again or self.dialect.written
            parts["decal_coarse"] = self._coarse()
        named = ",\n".join(f"{name} AS {how.get(name, '({})')}".format(f"\n{body}\n") for name, body in parts.items())
        return f"WITH {named}\n{self._cells() if self.cells else self._levels()}"

    def _given(self) -> Iterator[str]:
        """The columns of the user, under names of ours and of known types."""
        dialect = self.dialect
        for name, ours in self.texts.items():
            yield f"{dialect.as_text(dialect.name(name))} AS {ours}"
        for name, ours in zip(self.score, self.scores, strict=True):
            score = dialect.as_double(dialect.name(name))
            yield f"{_probability(score, dialect) if self.logit else score} AS {ours}"
        yield self._label()
        if self.weight:
            weight = dialect.as_double(dialect.name(self.weight))
            yield f"CASE WHEN {dialect.is_nan(weight)} THEN NULL ELSE {weight} END AS decal_weight"

    def _label(self) -> str:
        label = self.dialect.name(self.label)
        return f"{label if self.whole_labels else f'TRIM({self.dialect.as_text(label)})'} AS decal_y"

    def _scored(self) -> str:
        """One row for each row and model, or pair: its scores, and its label as 0, 1, any other value, or NULL."""
        columns, sources = [*self.keys, "decal_y", *(["decal_weight"] if self.weighted else [])], ["decal_given"]
        label = "decal_y" if self.whole_labels else label_of("decal_y", self.positive, self.dialect)
        columns.append(f"{label} AS decal_label")
        if self.positive:
            columns += ["decal_other", "decal_never"]
            sources.append("decal_labels")
        if self.models:
            columns.append(f"{_numbered('decal_model', self.scores)} AS decal_s")
            sources.append("decal_models")
        else:
            columns += [f"{each} AS decal_s{side}" for each, side in zip(self.scores, self.sides, strict=True)]
        return select(columns, " CROSS JOIN ".join(sources))

    def _outside(self, side: str) -> str:
        score = f"decal_s{side}"
        return f"(({score} < 0 OR {score} > 1) AND NOT ({self.dialect.is_nan(score)}))"

    def _bad(self) -> str:
        """The number of a row's fault in PROBLEMS; values that cannot be come before missing values."""
        known = {"weight": self.weight, "cluster": self.cluster, "positive": self.positive}
        words = {
            "outside": " OR ".join(map(self._outside, self.sides)),
            "absent": " OR ".join(f"decal_s{s} IS NULL OR {self.dialect.is_nan(f'decal_s{s}')}" for s in self.sides),
            "cluster": self.texts.get(self.cluster, ""),
            "infinite": self.dialect.number(math.inf),
        }
        wrong = (
            f"WHEN {each.condition.format(**words)} THEN {code}"
            for code, each in enumerate(PROBLEMS.values(), 1)
            if not each.needs or known[each.needs]
        )
        # Asked first, this spares sound rows all other questions: one row in twenty of the time.
        sound = [f"{each} >= 0 AND {each} <= 1" for each in (*(f"decal_s{side}" for side in self.sides), "decal_label")]
        sound += [f"decal_weight > 0 AND decal_weight < {words['infinite']}"] if self.weighted else []
        sound += [f"{words['cluster']} <> ''"] if self.cluster else []
        sound += ["decal_never = 0"] if self.positive else []
        return _case([f"WHEN {' AND '.join(sound)} THEN NULL", *wrong])

    def _rows(self) -> Iterator[str]:
        """The values of each sound row; for every other row its fault, and an example."""

        def sound(value: str, ours: str) -> str:
            return f"CASE WHEN decal_bad IS NULL THEN {value} END AS {ours}"

        for ours in self.keys:
            # Faults are not counted cluster by cluster.
            yield sound(ours, ours) if ours == "decal_c" else ours
        for side in self.sides:
            yield sound(f"decal_s{side} + 0", f"decal_p{side}")  # -0 + 0 is 0
        # The label of a row that lacks something else counts among those of all rows.
        first = next(code for code, each in enumerate(PROBLEMS.values(), 1) if not each.text)
        yield f"CASE WHEN decal_bad IS NULL OR decal_bad >= {first} THEN decal_label END AS decal_label"
        if self.weighted:
            yield sound("decal_weight", "decal_w")
        yield "decal_bad"
        scores = [f"decal_s{side}" for side in self.sides]
        score = (
            scores[0] if len(scores) == 1 else f"CASE WHEN {self._outside('_a')} THEN {scores[0]} ELSE {scores[1]} END"
        )
        values = {"score": score, "label": "decal_y"}
        values |= {"weight": "decal_weight"} if self.weighted else {}
        values |= {"other": "decal_other"} if self.positive else {}
        wrong = (
            f"WHEN {code} THEN {self.dialect.as_text(values[each.value])}"
            for code, each in enumerate(PROBLEMS.values(), 1)
            if each.value in values
        )
        yield f"CASE WHEN decal_bad IS NULL THEN NULL ELSE {_case(wrong, 'decal_bad')} END AS decal_value"

    def _sized(self) -> Iterator[str]:
        """The cell of a score, which is its place in the grid and how many thresholds it reaches; and its distance."""
        number = self.dialect.number
        for side in self.sides:
            place = self.dialect.as_integer(f"FLOOR(decal_p{side} * {number(self.grid)})")
            reached = (f"CASE WHEN decal_p{side} >= {number(edge)} THEN 1 ELSE 0 END" for edge in self.edges)
            yield f"{' + '.join([place, *reached])} AS decal_cell{side}"
            yield f"decal_p{side} + (decal_label - {number(1)}) AS decal_off{side}"

    def _reached(self, side: str) -> str:
        """How many thresholds the scores of a cell reach: a threshold in the middle of a place starts a cell."""
        firsts = [(at, math.floor(edge * self.grid) + at) for at, edge in enumerate(self.edges, 1)]
        cases = [f"WHEN decal_cell{side} >= {first} THEN {at}" for at, first in reversed(firsts)]
        return f"CASE {' '.join(cases)} ELSE 0 END" if cases else "0"

    def _losses(self) -> Iterator[str]:
        """The log loss, infinite where a score is certain and wrong."""
        number = self.dialect.number
        for side in self.sides:
            # ln(1 - s) to the last digits for small s too: what s + (label - 1) has lost of s is added.
            off = f"decal_off{side}"
            loss = f"decal_p{side} - ({off} - (decal_label - {number(1)})) - LN(ABS({off}))"
            yield f"CASE WHEN {off} = 0 THEN {number(math.inf)} ELSE {loss} END AS decal_loss{side}"

    def _coarse(self) -> str:
        """Sound rows with the coarse cell that each is in: where it starts, and its width."""
        from_end = f"{self.dialect.least}(decal_place, {GRID - 1} - decal_place)"
        octaves = range(MAX_SPLITS - 1, self.splits, -1)
        widths = [f"WHEN {from_end} >= {1 << each} THEN {1 << each - self.splits}" for each in octaves]
        width = _case([*widths, "ELSE 1"]) if widths else "1"
        reached = self._reached("")
        places = ["decal_placed.*", f"{reached} AS decal_reached", f"decal_cell - {reached} AS decal_place"]
        sound = select(places, "decal_placed\n    WHERE decal_bad IS NULL")
        sized = select(["decal_sound.*", f"{width} AS decal_width"], f"(\n{sound}\n    ) AS decal_sound")
        start = f"{self.dialect.as_integer(f'FLOOR({from_end} / decal_width)')} * decal_width"
        sides = [
            f"WHEN decal_place < {GRID // 2} THEN {start}",
            f"WHEN decal_place < {GRID} THEN {GRID} - decal_width - {start}",
            "ELSE decal_place",
        ]
        return select(["decal_wide.*", f"{_case(sides)} AS decal_from"], f"(\n{sized}\n    ) AS decal_wide")

    def _levels(self) -> str:
        dialect, squared = self.dialect, "decal_w * decal_w"
        rows, ones = dialect.as_integer("COUNT(*)"), dialect.as_integer("SUM(decal_label)")
        sums = {"n": rows, "pos": ones}
        if self.weighted:
            sums = {"n": "SUM(decal_w)", "pos": "SUM(decal_w * decal_label)"}
            sums |= {"n2": f"SUM({squared})", "pos2": f"SUM({squared} * decal_label)", "rows": rows, "rows_pos": ones}
        scores = {f"score{side}": f"decal_p{side}" for side in self.sides}
        return self._grouped("decal_rows", [*scores.values()], {**scores, **sums})

    def _cells(self) -> str:
        keys: list[str] = []
        columns: dict[str, str] = {}
        for side in self.sides:
            cell, reached = f"decal_cell{side}", self._reached(side)
            keys.append(cell)
            columns |= self._edges(side, f"({cell} - {reached})", reached)
        columns |= self._sums()
        if not self.by_cluster:
            return self._grouped("decal_placed", [*keys, "decal_label"], columns)
        everywhere = self._grouped("decal_placed", [*keys, "decal_label"], {**columns, BY_CLUSTER: "0"}, apart=False)
        coarse = {**columns, **self._edges("", "decal_from", "decal_reached", "decal_width"), BY_CLUSTER: "1"}
        keys = ["decal_from", "decal_width", "decal_reached", "decal_label"]
        return f"{everywhere}\nUNION ALL\n{self._grouped('decal_coarse', keys, coarse, judged=False)}"

    def _edges(self, side: str, place: str, reached: str, width: str = "1") -> dict[str, str]:
        """The number of a cell that starts at a place and reaches some thresholds, and its edges."""
        number, least = self.dialect.number, self.dialect.least
        low, high = f"{place} / {number(self.grid)}", f"({place} + {width}) / {number(self.grid)}"
        if self.edges:
            ends = [number(each) for each in (0.0, *self.edges, 1.0)]
            start, end = (_numbered(reached, values, 0) for values in (ends[:-1], ends[1:]))
            low, high = f"{self.dialect.greatest}({low}, {start})", f"{least}({high}, {end})"
        else:
            high = f"{least}({high}, {number(1)})"
        return {f"cell{side}": self.dialect.as_integer(f"{place} + {reached}"), f"low{side}": low, f"high{side}": high}

    def _sums(self) -> dict[str, str]:
        """Label, rows, and sums over the rows of a cell."""
        sums = {"label": "decal_label", "rows": self.dialect.as_integer("COUNT(*)")}
        sums["n"] = "SUM(decal_w)" if self.weighted else self.dialect.as_double("COUNT(*)")
        weights = ["decal_w * ", "decal_w * decal_w * "] if self.weighted else [""]
        for weight, power, loss, of_pairs in zip(weights, "sq", "lk", (DIFFERENCES, SQUARED_DIFFERENCES), strict=False):
            if power == "q":
                sums["n2"] = "SUM(decal_w * decal_w)"
            for side in self.sides:
                sums |= _powers(f"{power}{{}}{side}", weight, f"decal_p{side}", 4)
                sums |= _powers(f"{loss}{{}}{side}", weight, f"decal_loss{side}", 2)
            if self.pairs:
                sums |= _powers(f"{of_pairs[0][0]}{{}}", weight, _SQUARED, 2)
                sums |= _powers(f"{of_pairs[2][0]}{{}}", weight, _LOGARITHMIC, 2)
        if not self.pairs:
            sums |= dict(zip(ENDS, ("MIN(decal_p)", "MAX(decal_p)"), strict=True))
        return sums

    def _grouped(
        self, source: str, of_score: list[str], sums: dict[str, str], apart: bool = True, judged: bool = True
    ) -> str:
        """Sums by group, model, score, and what is wrong; and by cluster, if these are counted apart."""
        dialect = self.dialect
        texts = {name: ours for name, ours in self.texts.items() if apart or ours != "decal_c"}
        columns = {name: texts.get(name, dialect.as_text("NULL")) for name in self.texts}
        if self.pairs:
            columns |= {f"model{s}": dialect.text(name) for name, s in zip(self.score, self.sides, strict=True)}
        elif self.models:
            columns["model"] = _numbered("decal_model", map(dialect.text, self.score))
        wrong = (_numbered("decal_bad", map(dialect.text, PROBLEMS)), "MIN(decal_value)")
        columns |= sums | dict(zip(("bad", "value"), wrong if judged else [dialect.as_text("NULL")] * 2, strict=True))
        keys = [*texts.values(), *self.models, *of_score]
        keys += [*(["decal_w"] if self.by_weight else []), *(["decal_bad"] if judged else [])]
        listed = ",\n    ".join(f"{value} AS {dialect.name(name)}" for name, value in columns.items())
        return f"SELECT\n    {listed}\nFROM {source}\nGROUP BY {', '.join(keys)}"


_TAKEN_APART = ("decal_given", "decal_judged", "decal_placed")
"""Parts of the statement that several columns of the next part are computed from."""
_SQUARED = "((decal_p_b - decal_p_a) * (decal_p_b + decal_p_a - 2 * decal_label))"
"""The difference in squared loss between B and A: (b - y)^2 - (a - y)^2."""
_LOGARITHMIC = "(CASE WHEN decal_off_a = 0 OR decal_off_b = 0 THEN 0 ELSE decal_loss_b - decal_loss_a END)"


def _powers(name: str, weight: str, value: str, powers: int) -> dict[str, str]:
    """Sums of the weight times the value to the powers from 1, by name."""
    return {name.format(power): f"SUM({weight}{' * '.join([value] * power)})" for power in range(1, powers + 1)}


def _numbered(of: str, values: Iterable[str], first: int = 1) -> str:
    """A CASE of numbers from the first on, each with its value."""
    return f"CASE {of} {' '.join(f'WHEN {at} THEN {each}' for at, each in enumerate(values, first))} END"


def _case(cases: Iterable[str], of: str = "") -> str:
    """A CASE, each case on a line."""
    return "\n            ".join([f"CASE {of}".rstrip(), *cases]) + "\n        END"


def _probability(score: str, dialect: Dialect) -> str:
    """The probability of log-odds, in SQL; infinite, missing and other values stay as they are."""
    # GREATEST and LEAST of NULL are the other number in some engines, and NULL in others.
    finite = f"{score} > {dialect.number(-math.inf)} AND {score} < {dialect.number(math.inf)}"
    return f"CASE WHEN {finite} THEN {logistic(score, dialect)} ELSE {score} END"
