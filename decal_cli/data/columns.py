"""Which column plays which role: as the user named it, else by its usual names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from decal_cli.data.roles import Columns
from decal_cli.data.words import listed, nearest, quote
from decal_cli.errors import DecalError

SCORE_NAMES = ("p", "prob", "proba", "probability", "score", "y_prob", "y_score", "pred")
SCORE_GLOB = "p_*"
LABEL_NAMES = ("y", "label", "target", "y_true", "outcome")


@dataclass(frozen=True)
class Chosen:
    """The columns taken, by role; found: the roles that nobody named."""

    score: tuple[str, ...]
    label: str
    weight: str | None
    group: tuple[str, ...]
    features: tuple[str, ...]
    found: tuple[str, ...]

    @property
    def numbers(self) -> tuple[str, ...]:
        """Columns read as numbers straight away; features wait until they are asked for."""
        return self.score + (() if self.weight is None else (self.weight,))

    @property
    def texts(self) -> tuple[str, ...]:
        """Columns of which only equality matters."""
        return (self.label, *self.group)

    def roles(self) -> dict[str, str | tuple[str, ...]]:
        """Role -> column(s), for the report."""
        every = {"score": self.score, "label": self.label, "weight": self.weight}
        every |= {"group": self.group, "features": self.features}
        return {role: taken for role, taken in every.items() if taken}


def choose(names: Sequence[str], columns: Columns, shown: str) -> Chosen:
    """Resolve names, globs and usual names against the columns of one file.

    Errors: duplicate names, a name or glob without a column, a role with no or several candidates, a column in two
    roles.
    """
    if repeated := [n for n, times in Counter(names).items() if n and times > 1]:
        raise DecalError(f"{shown}: duplicate column {listed(repeated)}", "rename one of the two")
    pick = _Picker(list(names), shown)
    named = {c for c in (columns.label, columns.weight, *columns.group, *columns.score, *columns.features) if c}
    free = [n for n in names if n not in named]
    weight = pick.one(columns.weight) if columns.weight else None
    group = tuple(dict.fromkeys(pick.one(g) for g in columns.group))
    label = pick.one(columns.label) if columns.label else pick.usual("label", free)
    others = {label, weight, *group}
    score = pick.several(columns.score, others) if columns.score else (pick.usual("score", free, {label}),)
    features = pick.several(columns.features, {*others, *score})
    taken = [*[(s, "score") for s in score], (label, "label"), *[(g, "group") for g in group]]
    taken += [(weight, "weight")] if weight else []
    # A group may also be a feature (age band); a feature that is the label or the score is a leak or a slip.
    taken += [(f, "features") for f in features if f not in group]
    seen: dict[str, str] = {}
    for name, role in taken:
        if name in seen:
            raise DecalError(
                f"{shown}: column {quote(name)} is taken both as {seen[name]} and as {role}",
                f"name another column for {role}",
            )
        seen[name] = role
    found = tuple(r for r, given in (("score", columns.score), ("label", columns.label)) if not given)
    return Chosen(score, label, weight, group, features, found)


def same_columns(chosen: Chosen, first: str, names: Sequence[str], columns: Columns, shown: str) -> None:
    """Check that a further file has the columns taken from the first one, and that globs mean the same there."""
    wanted = (*chosen.score, chosen.label, chosen.weight, *chosen.group, *chosen.features)
    for name in wanted:
        if name is not None and name not in names:
            raise DecalError(
                f"{shown}: no column {quote(name)}, which {first} has",
                f"files given together are one data set and need the same columns; here: {listed(names)}",
            )
    other = choose(names, columns, shown)
    for mine, theirs in ((chosen.score, other.score), (chosen.features, other.features)):
        if extra := [n for n in theirs if n not in mine]:
            raise DecalError(
                f"{shown}: has column {quote(extra[0])}, which {first} lacks",
                "files given together need the same columns; name the columns instead of a pattern",
            )


class _Picker:
    def __init__(self, names: list[str], shown: str) -> None:
        self.names = names
        self.known = set(names)
        self.shown = shown

    def one(self, name: str) -> str:
        if name in self.known:
            return name
        near = nearest(name, self.names)
        hint = f"did you mean {quote(near)}? " if near else ""
        raise DecalError(f"{self.shown}: no column {quote(name)}", f"{hint}columns: {listed(self.names)}")

    def several(self, wanted: Sequence[str], others: set[str | None]) -> tuple[str, ...]:
        """Names and globs in the order given; a glob passes over columns that have another role."""
        picked: dict[str, None] = {}
        for name in wanted:
            if name in self.known or not any(c in name for c in "*?["):
                picked[self.one(name)] = None
                continue
            hits = [n for n in self.names if n and n not in others and fnmatchcase(n, name)]
            if not hits:
                raise DecalError(f"{self.shown}: no column matches {quote(name)}", f"columns: {listed(self.names)}")
            picked.update(dict.fromkeys(hits))
        return tuple(picked)

    def usual(self, role: str, free: list[str], but: set[str] | None = None) -> str:
        usual = SCORE_NAMES if role == "score" else LABEL_NAMES
        hits = [n for n in free if n not in (but or ()) and n.lower() in usual]
        if role == "score":
            patterned = [n for n in free if n not in (but or ()) and fnmatchcase(n.lower(), SCORE_GLOB)]
            hits = [n for n in free if n in hits or n in patterned]
        if len(hits) == 1:
            return hits[0]
        if not hits:
            wanted = ", ".join((*usual, SCORE_GLOB) if role == "score" else usual)
            raise DecalError(
                f"{self.shown}: no {role} column (none is called {wanted})",
                f"name it with --{role}; columns: {listed(self.names)}",
            )
        fix = f"name one, such as --{role} {quote(hits[0])}"
        if role == "score" and len(patterned) > 1:
            fix += ", or --score 'p_*' for all of those side by side"
        raise DecalError(f"{self.shown}: {len(hits)} columns could be the {role}: {listed(hits)}", fix)
