"""What a metric may ask for, declared once, and how each kind of it is made from rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from decal_cli.crossfit.probe import Probed, build_probe
from decal_cli.crossfit.regions import Regions, build_regions
from decal_cli.errors import Undefined
from decal_cli.tables.rows import Rows
from decal_cli.tables.seed import Seed
from decal_cli.tables.table import Table
from decal_cli.task import BinaryTask


class InputKind(NamedTuple):
    """One kind of input, which a metric asks for by annotating a parameter with its type.

    name: what the user gives for it. absent: why a metric is undefined where the user did not give it; empty where it
    is always there. build: makes it of what the user gave, None where that is not enough.
    """

    name: str
    absent: str
    build: Callable[[Inputs], Any]


class Inputs:
    """What metrics are computed from. Each kind of input is built when a metric first asks for it, and kept."""

    def __init__(self, rows: Rows | None = None, task: BinaryTask | None = None, seed: int = 0) -> None:
        self.rows = rows
        self.task = task
        self.seed = seed
        self._built: dict[type, Any] = {}
        self._others: Inputs | None = None

    @classmethod
    def of(cls, *inputs: object, seed: int = 0) -> Inputs:
        """Inputs that are there already, such as a table; None counts as not given."""
        return cls(seed=seed).having(*inputs)

    def having(self, *inputs: object) -> Inputs:
        """These in place of their kind; all other kinds are shared with the inputs as they were."""
        others = Inputs(self.rows, self.task, self.seed)
        others._built = {type(value): value for value in inputs if value is not None}
        others._others = self
        return others

    def get(self, kind: type) -> Any:
        """The input of this kind, None where the user did not give what it is made from."""
        if kind not in self._built:
            self._built[kind] = INPUT_KINDS[kind].build(self) if self._others is None else self._others.get(kind)
        return self._built[kind]

    def all_of(self, kinds: Sequence[type]) -> list[Any]:
        """The inputs of these kinds; Undefined says what the user did not give."""
        inputs = []
        for kind in kinds:
            inputs.append(self.get(kind))
            if inputs[-1] is None:
                raise Undefined(INPUT_KINDS[kind].absent)
        return inputs


def _of_features(build: Callable[..., Any]) -> InputKind:
    def from_rows(inputs: Inputs) -> Any:
        if inputs.rows is None or inputs.rows.features is None:
            return None
        return build(inputs.rows, seed=inputs.seed)

    return InputKind("features", "needs features: name the columns with --features", from_rows)


INPUT_KINDS: dict[type, InputKind] = {
    Table: InputKind("table", "", lambda inputs: None if inputs.rows is None else inputs.rows.table),
    BinaryTask: InputKind(
        "task", "needs a task: --threshold, --utility, --cost-fp/--cost-fn or --odds", lambda inputs: inputs.task
    ),
    Seed: InputKind("seed", "", lambda inputs: Seed(inputs.seed)),
    Regions: _of_features(build_regions),
    Probed: _of_features(build_probe),
}
