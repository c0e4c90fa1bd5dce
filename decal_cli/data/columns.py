"""Which column plays which role: as the user named it, else by its usual names.

A pattern such as 'lr:*' names the columns of one model of several classes; what stands for the star is the class.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from decal_cli.data.formats.files import Wanted
from decal_cli.data.formats.logs import LM_EVAL_KEYS
from decal_cli.data.words import label_text, listed, nearest, quote
from decal_cli.errors import DecalError
from decal_cli.hints import Hint
from decal_cli.numbers import many
from decal_cli.roles import ALL_COLUMNS, DECLARATIONS, ROLES, ROW_UTILITIES, Columns, several

MAX_CLASSES = 10_000


@dataclass(frozen=True)
class ClassColumns:
    """A model's columns, one for each class, in the order of the classes."""

    model: str
    columns: tuple[str, ...]
    classes: tuple[str, ...]


def class_columns(
    patterns: Sequence[str], names: Sequence[str], shown: str, classes: str = ""
) -> tuple[ClassColumns, ...]:
    """The models that patterns name, all with the classes of the first. Errors: DecalError.

    classes: names, 'a,b,c', of what list-valued columns hold; "" where every class has a column.
    """
    models: list[ClassColumns] = []
    for pattern in patterns:
        model = _one_list(pattern, names, shown, classes) if classes else _one_model(pattern, names, shown)
        if any(model.model == other.model for other in models):
            raise DecalError(f"two patterns name the model {quote(model.model)}", "name every model once")
        first = (*models, model)[0]
        for here, there, name in ((first, model, model.model), (model, first, first.model)):
            if lacking := [each for each in here.classes if each not in there.classes]:
                raise DecalError(
                    f"{shown}: model {quote(name)} has no column for class {quote(lacking[0])}, which another "
                    "model has",
                    "models side by side need the same classes",
                )
        column_of = dict(zip(model.classes, model.columns, strict=False))
        columns = model.columns if classes else tuple(column_of[name] for name in first.classes)
        models.append(ClassColumns(model.model, columns, first.classes))
    return tuple(models)


def _one_model(pattern: str, names: Sequence[str], shown: str) -> ClassColumns:
    option = Hint("proba", quote(pattern))
    if pattern.count("*") != 1:
        raise DecalError(
            f"{option} holds no star, or more than one", "write 'lr:*', or 'lr:*,nb:*' for two models: * is the class"
        )
    start, end = pattern.split("*")
    matched = {
        name[len(start) : len(name) - len(end)]: name
        for name in names
        if name.startswith(start) and name.endswith(end) and len(name) > len(start) + len(end)
    }
    added = _of_new_scores([*matched])
    columns = tuple(name for stem, name in matched.items() if stem not in added)
    classes = tuple(label_text(stem) or "" for stem in matched if stem not in added)
    if not 2 <= len(columns) <= MAX_CLASSES:
        raise DecalError(
            f"{shown}: {option} matches {many(len(columns), 'column')}, not 2 to {MAX_CLASSES:,}",
            f"a column for each class; columns: {listed(names)}",
        )
    twice = next((name for at, name in enumerate(classes) if name in classes[:at] or not name), None)
    if twice is not None:
        raise DecalError(f"{shown}: two columns of {option} are class {quote(twice)}", "rename one")
    return ClassColumns((start + end).strip(":_-. ") or "proba", columns, classes)


def _of_new_scores(stems: Sequence[str]) -> set[str]:
    """What `apply` added to the others: of a, b, platt:a and platt:b the last two."""

    def ends(stem: str) -> Iterator[tuple[str, str]]:
        """Every way to cut it at a colon."""
        parts = stem.split(":")
        return ((":".join(parts[:at]), ":".join(parts[at:])) for at in range(1, len(parts)))

    known = set(stems)
    old = [stem for stem in stems if not any(end in known for _, end in ends(stem))]
    heads = {head for stem in stems for head, end in ends(stem) if end in known}
    whole = [head for head in heads if len(old) > 1 and all(f"{head}:{each}" in known for each in old)]
    return {f"{head}:{name}" for head in whole for name in old}


def _one_list(name: str, names: Sequence[str], shown: str, classes: str) -> ClassColumns:
    """A model whose column holds a list of probabilities."""
    if name not in names:
        raise DecalError(
            f"{shown}: no column {quote(name)}", f"with {Hint('classes')}, name one list; columns: {listed(names)}"
        )
    named = tuple(label_text(each) or "" for each in classes.split(","))
    if len(named) < 2 or "" in named or len(set(named)) < len(named):
        raise DecalError(
            f"{Hint('classes', quote(classes))} are not different names", "write 'a,b,c', in the list's order"
        )
    return ClassColumns(name, (name,), named)


@dataclass(frozen=True)
class Chosen(Columns):
    """The columns of one file, every one by its name there; guessed: the roles that nobody named.

    models: of several classes, their columns. every_feature: whether the user named all that have no other role.
    """

    guessed: tuple[str, ...] = ()
    models: tuple[ClassColumns, ...] = ()
    every_feature: bool = False

    @property
    def numbers(self) -> tuple[str, ...]:
        """Columns read as numbers straight away; features wait until they are asked for."""
        return self._read_as("numbers")

    @property
    def texts(self) -> tuple[str, ...]:
        """Columns of which only equality matters."""
        return self._read_as("texts")

    @property
    def read(self) -> Wanted:
        """Columns read as numbers or as texts."""
        return {**dict.fromkeys(self.numbers, "numbers"), **dict.fromkeys(self.texts, "texts")}

    @property
    def as_they_stand(self) -> bool:
        """Whether rows are taken one by one as they are: in no other population, at no capacity."""
        return not (self.prevalence or self.sampled_negatives or self.margin or self.capacity)

    @property
    def scores(self) -> tuple[str, ...]:
        """The columns of scores, or of the probabilities of several classes."""
        return tuple(name for model in self.scored for name in model.columns)

    @property
    def worths(self) -> tuple[str, ...]:
        """The columns of what decisions on a row are worth."""
        return tuple(dict.fromkeys(name for role in ROW_UTILITIES for name in self.names(role)))

    @property
    def scored(self) -> tuple[ClassColumns, ...]:
        """The columns of each model; a model of two classes has one column, and no names of classes."""
        return self.models or tuple(ClassColumns(name, (name,), ()) for name in self.score)

    def roles(self) -> dict[str, str | tuple[str, ...]]:
        """Role -> column(s)."""
        return {role: getattr(self, role) for role in ROLES if self.names(role)}

    def shown(self) -> dict[str, str | tuple[str, ...]]:
        """Role -> column(s), and the label that counts as 1 where the user named it, for the report."""
        return self.roles() | ({"positive": self.positive} if self.positive else {})

    def free(self, names: Sequence[str], patterns: Sequence[str]) -> tuple[str, ...]:
        """The columns among `names` that have no role and whose names match one of the patterns."""
        used = {name for role in ROLES for name in self.names(role)}
        return tuple(name for name in names if name not in used and called_so(name, patterns))

    def _read_as(self, way: str) -> tuple[str, ...]:
        # Two roles may share a column, which is read once.
        roles = (role for role, declared in ROLES.items() if declared.read_as == way)
        return tuple(dict.fromkeys(name for role in roles for name in self.names(role)))


def class_pattern(names: Sequence[str], classes: Sequence[str]) -> str:
    """The first pattern, such as 'lr:*', that has a column for each of these classes; "" where none has."""
    stems = (name.removesuffix(classes[0]) for name in names if name.endswith(classes[0]))
    in_all = (stem for stem in stems if stem[-1:] in (*":_-. ",) and {stem + each for each in classes} <= {*names})
    return next((f"{stem}*" for stem in in_all), "")


def called_so(name: str, patterns: Sequence[str]) -> bool:
    """Whether a name, in lower case, matches one of these patterns."""
    return any(fnmatchcase(name.lower(), pattern) for pattern in patterns)


def has_usual(role: str, names: Sequence[str]) -> bool:
    """Whether a column has a usual name of this role."""
    return any(called_so(name, ROLES[role].usual) for name in names)


def choose(names: Sequence[str], columns: Columns, shown: str, without: Sequence[str] = ()) -> Chosen:
    """Resolve names, globs and usual names against the columns of one file; without: roles that are not looked for.

    Errors: duplicate names, a name or glob without a column, a role with no or several candidates, a column in two
    roles.
    """
    if repeated := [n for n, times in Counter(names).items() if n and times > 1]:
        raise DecalError(f"{shown}: duplicate column {listed(repeated)}", "rename one of the two")
    if columns.classes and not columns.proba:
        raise DecalError(f"{Hint('classes')} names the classes of a list", f"name its column with {Hint('proba')}")
    named = {name for role in ROLES for name in columns.names(role)}
    by_role: dict[str, tuple[str, ...]] = {}
    models: tuple[ClassColumns, ...] = ()
    # Exact names first: a pattern passes over the columns that have another role.
    for role, declared in sorted(ROLES.items(), key=lambda each: each[1].globs):
        others = {name for chosen in by_role.values() for name in chosen}
        given = columns.names(role)
        by_role[role] = ()
        if declared.unless and columns.names(declared.unless):
            if given:
                raise DecalError(f"both {Hint(role)} and {Hint(declared.unless)} are named", "name one of them")
        elif role == "proba":
            free = names if columns.classes else [name for name in names if name not in others]
            models = class_columns(given, free, shown, columns.classes)
            by_role[role] = tuple(name for model in models for name in model.columns)
        elif given:
            by_role[role] = _picked(given, names, shown, others if declared.globs else None)
        elif declared.usual and role not in without:
            by_role[role] = (_usual(role, [n for n in names if n not in named | others], names, shown),)
    check_utilities(columns.utility_columns, len(models[0].classes) if models else 2)
    role_of: dict[str, str] = {}
    for role, declared in ROLES.items():
        for name in by_role[role]:
            before = role_of.setdefault(name, role)
            if before != role and before not in declared.shares:
                fix = f"name another column for {role}"
                for unnamed, other in ((before, role), (role, before)):
                    if not columns.names(unnamed):
                        fix = f"name the {unnamed} with {Hint(unnamed)}, or another column for {other}"
                raise DecalError(f"{shown}: column {quote(name)} is taken both as {before} and as {role}", fix)
    values: dict[str, Any] = {name: getattr(columns, name) for name in DECLARATIONS}
    values |= {role: chosen if several(role) else next(iter(chosen), "") for role, chosen in by_role.items()}
    guessed = tuple(role for role in ROLES if by_role[role] and not columns.names(role))
    return Chosen(**values, guessed=guessed, models=models, every_feature=ALL_COLUMNS in columns.features)


def check_utilities(names: Sequence[str], classes: int) -> None:
    """Raise a DecalError unless there are as many utility columns for each of two or more actions as classes."""
    if names and (len(names) % classes or len(names) < 2 * classes):
        raise DecalError(
            f"{Hint('utility_columns', quote(','.join(names)))} names {len(names)} columns, and each of two or more "
            f"actions has {classes}",
            f"name them in the order of {Hint('utility')}: for each action a column for each class, as in tn,fn,fp,tp",
        )
    if len(set(names)) < len(names):
        twice = next(name for name in names if list(names).count(name) > 1)
        raise DecalError(f"{Hint('utility_columns')} names {quote(twice)} twice", "name a column for each")


def same_columns(chosen: Chosen, first: str, names: Sequence[str], columns: Columns, shown: str) -> None:
    """Check that a further file has the columns taken from the first one, and that globs mean the same there."""
    for name in (name for role in ROLES for name in chosen.names(role)):
        if name not in names:
            raise DecalError(
                f"{shown}: no column {quote(name)}, which {first} has",
                f"files given together are one data set and need the same columns; here: {listed(names)}",
            )
    other = choose(names, columns, shown)
    for role in (role for role, declared in ROLES.items() if declared.globs):
        if extra := [name for name in other.names(role) if name not in chosen.names(role)]:
            raise DecalError(
                f"{shown} has column {quote(extra[0])}, which {first} lacks",
                "files given together need the same columns; name the columns instead of a pattern",
            )


def nearest_of(name: str, names: Sequence[str], shown: str, what: str = "column", after: str = "") -> str:
    """The name, which is one of these. Errors: DecalError, with the one that is spelt most like it.

    after: what the error says after the name.
    """
    if name in names:
        return name
    near = nearest(name, names)
    hint = f"did you mean {quote(near)}? " if near else ""
    raise DecalError(f"{shown}: no {what} {quote(name)}{after}", f"{hint}{what}s: {listed(names)}")


def _picked(given: Sequence[str], names: Sequence[str], shown: str, others: set[str] | None) -> tuple[str, ...]:
    """Exact names, each once; and unless others is None patterns, which pass over these columns, and lists of both."""
    picked: list[str] = []
    known = set(names)
    for name in given if others is None else in_lists(given, known):
        if others is None or name in known or not any(c in name for c in "*?["):
            picked.append(nearest_of(name, names, shown))
            continue
        hits = [n for n in names if n and n not in others and fnmatchcase(n, name)]
        if not hits:
            raise DecalError(f"{shown}: no column matches {quote(name)}", f"columns: {listed(names)}")
        picked += hits
    return tuple(dict.fromkeys(picked))


def in_lists(given: Iterable[str], names: Collection[str]) -> Iterator[str]:
    """What is given, where a text such as "a,b" is a list unless a column is called so."""
    for text in given:
        is_list = text not in names and "," in text
        yield from filter(None, map(str.strip, text.split(","))) if is_list else [text]


def _usual(role: str, free: Sequence[str], names: Sequence[str], shown: str) -> str:
    """The one column that has a usual name of the role: a free one, or where all are taken the one that is."""
    usual = ROLES[role].usual
    hits = [name for name in free if called_so(name, usual)] or [name for name in names if called_so(name, usual)]
    if len(hits) == 1:
        return hits[0]
    if not hits and {*LM_EVAL_KEYS} <= {*names}:
        raise DecalError(f"{shown} is a log of lm-eval", f"add {Hint('from', 'lm-eval')}")
    if not hits:
        fix = f"name it with {Hint(role)}"
        stems = Counter(name.partition(":")[0] for name in names if ":" in name)
        if role == "score" and stems and max(stems.values()) > 1:
            fix += f", or a column for each class with {Hint('proba', repr(f'{max(stems, key=stems.__getitem__)}:*'))}"
        only = ", the only one: a CSV file is cut at commas, semicolons or tabs" if len(names) == 1 else ""
        raise DecalError(
            f"{shown}: no {role} column (none is called {', '.join(usual)})", f"{fix}; columns: {listed(names)}{only}"
        )
    fix = f"name one, such as {Hint(role, quote(hits[0]))}"
    for glob in (pattern for pattern in usual if "*" in pattern):
        if sum(fnmatchcase(name.lower(), glob) for name in hits) > 1:
            fix += f", or {Hint(role, repr(glob))} for all of those side by side"
    raise DecalError(f"{shown}: {len(hits)} columns could be the {role}: {listed(hits)}", fix)
