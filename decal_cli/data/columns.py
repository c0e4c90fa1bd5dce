"""Which column plays which role: as the user named it, else by its usual names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from decal_cli.data.classes import ClassColumns, class_columns
from decal_cli.data.words import listed, nearest, quote
from decal_cli.errors import DecalError
from decal_cli.hints import Hint
from decal_cli.roles import DECLARATIONS, ROLES, Columns, several


@dataclass(frozen=True)
class Chosen(Columns):
    """The columns of one file, every one by its name there; guessed: the roles that nobody named.

    models: of several classes, their columns.
    """

    label: str = ""
    guessed: tuple[str, ...] = ()
    models: tuple[ClassColumns, ...] = ()

    @property
    def numbers(self) -> tuple[str, ...]:
        """Columns read as numbers straight away; features wait until they are asked for."""
        return self._read_as("numbers")

    @property
    def texts(self) -> tuple[str, ...]:
        """Columns of which only equality matters."""
        return self._read_as("texts")

    def roles(self) -> dict[str, str | tuple[str, ...]]:
        """Role -> column(s), for the report."""
        return {role: getattr(self, role) for role in ROLES if self.names(role)}

    def _read_as(self, way: str) -> tuple[str, ...]:
        # Two roles may share a column, which is read once.
        roles = (role for role, declared in ROLES.items() if declared.read_as == way)
        return tuple(dict.fromkeys(name for role in roles for name in self.names(role)))


def has_usual(role: str, names: Sequence[str]) -> bool:
    """Whether a column has a usual name of this role."""
    return any(fnmatchcase(name.lower(), pattern) for name in names for pattern in ROLES[role].usual)


def choose(names: Sequence[str], columns: Columns, shown: str, without: Sequence[str] = ()) -> Chosen:
    """Resolve names, globs and usual names against the columns of one file; without: roles that are not looked for.

    Errors: duplicate names, a name or glob without a column, a role with no or several candidates, a column in two
    roles.
    """
    if repeated := [n for n, times in Counter(names).items() if n and times > 1]:
        raise DecalError(f"{shown}: duplicate column {listed(repeated)}", "rename one of the two")
    pick = _Picker(list(names), shown)
    named = {name for role in ROLES for name in columns.names(role)}
    by_role: dict[str, tuple[str, ...]] = {}
    models: tuple[ClassColumns, ...] = ()
    # Exact names first: a pattern passes over the columns that have another role.
    for role in sorted(ROLES, key=lambda role: ROLES[role].globs):
        others = {name for chosen in by_role.values() for name in chosen}
        unless = ROLES[role].unless
        if unless and columns.names(unless):
            if columns.names(role):
                raise DecalError(f"both {Hint(role)} and {Hint(unless)} are named", "name one of them")
            by_role[role] = ()
        elif role == "proba":
            models = class_columns(columns.proba, names, shown, columns.classes)
            by_role[role] = tuple(name for model in models for name in model.columns)
        elif given := columns.names(role):
            by_role[role] = pick.several(given, others) if ROLES[role].globs else pick.all(given)
        elif ROLES[role].usual and role not in without:
            by_role[role] = (pick.usual(role, [n for n in names if n not in named and n not in others]),)
        else:
            by_role[role] = ()
    check_utilities(columns.utility_columns, len(models[0].classes) if models else 2)
    _check_no_clash(by_role, shown)
    values: dict[str, Any] = {name: getattr(columns, name) for name in DECLARATIONS}
    values |= {role: chosen if several(role) else next(iter(chosen), None) for role, chosen in by_role.items()}
    return Chosen(
        **values, guessed=tuple(role for role in ROLES if by_role[role] and not columns.names(role)), models=models
    )


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


def _check_no_clash(by_role: dict[str, tuple[str, ...]], shown: str) -> None:
    role_of: dict[str, str] = {}
    for role, declared in ROLES.items():
        for name in by_role[role]:
            before = role_of.setdefault(name, role)
            if before != role and before not in declared.shares:
                raise DecalError(
                    f"{shown}: column {quote(name)} is taken both as {before} and as {role}",
                    f"name another column for {role}",
                )


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
                f"{shown}: has column {quote(extra[0])}, which {first} lacks",
                "files given together need the same columns; name the columns instead of a pattern",
            )


def nearest_of(name: str, names: Sequence[str], shown: str, what: str = "column") -> str:
    """The name, which is one of these. Errors: DecalError, with the one that is spelt most like it."""
    if name in names:
        return name
    near = nearest(name, names)
    hint = f"did you mean {quote(near)}? " if near else ""
    raise DecalError(f"{shown}: no {what} {quote(name)}", f"{hint}{what}s: {listed(names)}")


class _Picker:
    def __init__(self, names: list[str], shown: str) -> None:
        self.names = names
        self.known = set(names)
        self.shown = shown

    def one(self, name: str) -> str:
        return nearest_of(name, self.names, self.shown)

    def all(self, given: Sequence[str]) -> tuple[str, ...]:
        """Exact names, each once."""
        return tuple(dict.fromkeys(map(self.one, given)))

    def several(self, given: Sequence[str], others: set[str]) -> tuple[str, ...]:
        """Names and globs in the order given; a glob passes over columns that have another role.

        Where no column is called so, "a,b" is a list of names and globs.
        """
        picked: dict[str, None] = {}
        for name in self._listed(given):
            if name in self.known or not any(c in name for c in "*?["):
                picked[self.one(name)] = None
                continue
            hits = [n for n in self.names if n and n not in others and fnmatchcase(n, name)]
            if not hits:
                raise DecalError(f"{self.shown}: no column matches {quote(name)}", f"columns: {listed(self.names)}")
            picked.update(dict.fromkeys(hits))
        return tuple(picked)

    def _listed(self, given: Sequence[str]) -> list[str]:
        names: list[str] = []
        for name in given:
            if name in self.known or "," not in name:
                names.append(name)
            else:
                names += [part.strip() for part in name.split(",") if part.strip()]
        return names

    def usual(self, role: str, free: list[str]) -> str:
        """The one free column that has a usual name of the role."""
        usual = ROLES[role].usual
        hits = [name for name in free if any(fnmatchcase(name.lower(), pattern) for pattern in usual)]
        if len(hits) == 1:
            return hits[0]
        if not hits:
            raise DecalError(
                f"{self.shown}: no {role} column (none is called {', '.join(usual)})",
                f"name it with {Hint(role)}; columns: {listed(self.names)}",
            )
        fix = f"name one, such as {Hint(role, quote(hits[0]))}"
        for glob in (pattern for pattern in usual if "*" in pattern):
            if sum(fnmatchcase(name.lower(), glob) for name in hits) > 1:
                fix += f", or {Hint(role, repr(glob))} for all of those side by side"
        raise DecalError(f"{self.shown}: {len(hits)} columns could be the {role}: {listed(hits)}", fix)
