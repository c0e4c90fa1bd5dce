"""Model files: a fitted model as JSON that a reviewer can read, and that loads to the same model or not at all.

No code is stored and none is run: a file names declared classes and holds their numbers. The text is canonical and
carries its own SHA-256, so that a file in which any byte was changed is refused. The digest tells accidents and edits,
not forgery: whoever can write the file can write a digest.
"""

from __future__ import annotations

import base64
import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args, get_origin, get_type_hints

import numpy as np

from decal_cli.documents import canonical_json, digest_of, json_of, spelled_out
from decal_cli.errors import DecalError
from decal_cli.hints import Verb
from decal_cli.learn.methods import METHODS
from decal_cli.learn.models import MODELS, Applied, Model, are_probabilities, is_finite, name_of, need
from decal_cli.limits import MAX_ARRAY_BYTES, MAX_WIDTH
from decal_cli.tables.features import PLURALS, Features, Kind, number_kinds
from decal_cli.tables.rows import Unlabelled
from decal_cli.task import BinaryTask
from decal_cli.version import __version__

VERSION = 1
LISTED = 4096
"""Arrays of more numbers are written as base64 of their little-endian bytes: nobody reads them one by one."""
_DTYPES = ("float64", "float32", "int64", "int32", "int16", "uint8", "bool")


@dataclass(frozen=True)
class Saved:
    """What a model file holds.

    method: as the user names it, 'platt(on=p)'. columns: those that a file to be scored must have. fitted_on: where the
    training rows came from, and seed and version: what one must know to make the file again.
    """

    method: str
    model: Model
    score: str
    features: tuple[str, ...] = ()
    width: int = 0
    """Columns of the features: one list-valued column holds many numbers."""
    kinds: tuple[Kind, ...] = ()
    """What each named feature holds; a list-valued column holds numbers."""
    groups: tuple[str, ...] = ()
    logit: bool = False
    task: BinaryTask | None = None
    classes: tuple[str, ...] = ()
    """The names of several classes; proba: the columns of their probabilities, score: what these are called."""
    proba: tuple[str, ...] = ()
    fitted_on: Mapping[str, Any] = field(default_factory=dict)

    @property
    def column_kinds(self) -> tuple[Kind, ...]:
        """What each column of the features holds."""
        return self.kinds if len(self.kinds) == self.width else number_kinds(self.width)


def to_text(saved: Saved) -> str:
    """The text of the file. Deterministic: the same model gives the same bytes."""
    task = saved.task
    document: dict[str, Any] = {
        "decal_model": VERSION,
        "method": saved.method,
        "columns": {
            "score": saved.score,
            "logit": saved.logit,
            "features": list(saved.features),
            "kinds": list(saved.kinds),
            "width": saved.width,
            "groups": list(saved.groups),
            **({"classes": list(saved.classes), "proba": list(saved.proba)} if saved.classes else {}),
        },
        "task": {
            "utility": [list(row) for row in task.utility],
            "decision_threshold": task.decision_threshold,
            "threshold": task.threshold,
        }
        if task
        else None,
        "fitted_on": {"decal": __version__, **saved.fitted_on},
        "model": _encoded(saved.model),
    }
    return canonical_json({**document, "sha256": digest_of(document)})


def from_text(text: str, shown: str) -> Saved:
    """The model of a file's text; shown: the file, for messages. Errors: DecalError, one line, saying what is wrong."""
    document = _checked(text, shown)
    try:
        saved = _saved(document)
        groups = {name: np.full(2, "") for name in saved.groups}
        features = Features.missing(2, saved.column_kinds) if saved.width else None
        # Two rows are scored: what does not fit together is found here, not in the middle of somebody's data.
        score = np.eye(len(saved.classes))[:2] if saved.classes else np.array([0.0, 1.0])
        _score(saved, Unlabelled(score, classes=saved.classes, groups=groups, features=features))
        need(to_text(saved) == text, "it is not as decal writes it")
    except Exception as error:
        # A file whose digest was forged can fail in any way there is.
        raise _unusable(error, shown) from None
    return saved


def score_rows(saved: Saved, rows: Unlabelled, shown: str) -> Applied:
    """What a loaded model predicts for rows. Errors: DecalError, where it is none that decal could have fitted."""
    try:
        return _score(saved, rows)
    except Exception as error:
        raise _unusable(error, shown) from None


def _score(saved: Saved, rows: Unlabelled) -> Applied:
    with np.errstate(all="ignore"):
        applied = saved.model(rows)
    need(isinstance(applied, Applied), "it does not give every row a score")
    shape = (len(rows), len(saved.classes)) if saved.classes else (len(rows),)
    given = {name: values for name, values in applied._asdict().items() if values is not None}
    every = all(values.shape == shape and values.dtype == np.float64 for values in given.values())
    need(every, "it does not give every row a score")
    need(is_finite(given.pop("threshold", 0.0)), "it gives a threshold that is not finite")
    need(all(map(are_probabilities, given.values())), "it gives a score outside [0, 1]")
    return applied._replace(**{name: np.clip(values, 0.0, 1.0) for name, values in given.items()})


def _unusable(error: Exception, shown: str) -> DecalError:
    said = " ".join(str(error).split())[:80] or type(error).__name__
    return DecalError(f"{shown}: the model in it cannot be used ({said})", _AGAIN)


_AGAIN = f"fit it again: {Verb('fit')} METHOD TRAIN -o MODEL"
_OURS = f"name a file that `{Verb('fit')}` wrote"


def _saved(document: Mapping[str, Any]) -> Saved:
    columns, task = document["columns"], document["task"]
    width = int(columns["width"])
    fits = 0 <= width <= MAX_WIDTH and bool(width) == bool(columns["features"])
    need(fits, f"features of {width} numbers a row")
    METHODS.parse(document["method"])
    for names in (columns["features"], columns["groups"]):
        need(len(set(names)) == len(names), "a column is named twice")
    return Saved(
        method=document["method"],
        model=_decoded(document["model"]),
        score=str(columns["score"]),
        features=tuple(map(str, columns["features"])),
        width=width,
        kinds=_kinds(columns, width),
        groups=tuple(map(str, columns["groups"])),
        logit=bool(columns["logit"]),
        task=BinaryTask.of_utility(task["utility"], task["decision_threshold"]) if task else None,
        **_classes(columns),
        fitted_on=_fitted_on(document["fitted_on"]),
    )


def _classes(columns: Mapping[str, Any]) -> dict[str, Any]:
    """The names and columns of several classes; nothing of two."""
    if "classes" not in columns:
        return {}
    classes, proba = (tuple(map(str, columns[key])) for key in ("classes", "proba"))
    need(len(classes) == len(proba) > 1, "every class needs a column")
    need(len(set(classes)) == len(set(proba)) == len(classes), "a class or a column is named twice")
    return {"classes": classes, "proba": proba}


def _fitted_on(fitted_on: Any) -> dict[str, Any]:
    """Where the training rows came from; of it the digests of the files and the shares of the population are read."""
    digests = [item["sha256"] for item in fitted_on.get("inputs", ())]
    need(all(isinstance(each, str) for each in digests), "the files it was fitted on have no digests")
    shares = fitted_on.get("prevalence", 0.5)
    shares = list(shares.values()) if isinstance(shares, dict) else [shares]
    need(all(isinstance(each, float) and 0 < each < 1 for each in shares), "a population has shares between 0 and 1")
    return dict(fitted_on)


def _kinds(columns: Mapping[str, Any], width: int) -> tuple[Kind, ...]:
    kinds: tuple[Kind, ...] = tuple(columns["kinds"])
    need(len(kinds) == len(columns["features"]) and set(kinds) <= PLURALS.keys(), "features of unknown kinds")
    need(width == len(kinds) or kinds == number_kinds(1), f"{len(kinds)} features of {width} columns")
    return kinds


def _checked(text: str, shown: str) -> dict[str, Any]:
    """The document, unchanged since it was written and of this version."""
    document = json_of(text, shown, _OURS)
    if not isinstance(document, dict) or "decal_model" not in document:
        raise DecalError(f"{shown} is not a model file of decal", _OURS)
    version = document["decal_model"]
    if type(version) is not int or version != VERSION:
        found = f"version {str(version)[:20]}" if type(version) is int else "a version that is no number"
        raise DecalError(f"{shown} is a model file of {found}; this decal reads version {VERSION}", _AGAIN)
    digest = document.pop("sha256", None)
    try:
        unchanged = digest == digest_of(document) and canonical_json({**document, "sha256": digest}) == text
    except ValueError:
        # What decal writes is no half character.
        unchanged = False
    if not unchanged:
        raise DecalError(f"{shown} was changed after it was written (its checksum does not match)", _AGAIN)
    return document


def _encoded(value: Any) -> Any:
    """A model's value as JSON: arrays under the name of their type, models under that of their class."""
    if dataclasses.is_dataclass(value) and type(value) in MODELS.values():
        fields = {item.name: _encoded(getattr(value, item.name)) for item in dataclasses.fields(value)}
        return {"model": name_of(type(value)), **fields}
    if isinstance(value, np.ndarray):
        return _encoded_array(value)
    if isinstance(value, tuple):
        return [_encoded(item) for item in value]
    if isinstance(value, (bool, str)) or value is None:
        return value
    if isinstance(value, (int, np.integer)):
        return int(value)
    if isinstance(value, (float, np.floating)):
        number = float(value)
        return number if math.isfinite(number) else {"number": repr(number)}
    raise TypeError(f"a model holds a {type(value).__name__}, which no model file can")


def _encoded_array(value: np.ndarray) -> dict[str, Any]:
    kind = "text" if value.dtype.kind == "U" else value.dtype.name
    if kind == "text":
        items: Any = value.ravel().tolist()
    elif kind not in _DTYPES:
        raise TypeError(f"a model holds an array of {kind}, which no model file can")
    elif value.size > LISTED or not np.isfinite(value).all():
        little = np.ascontiguousarray(value, dtype=value.dtype.newbyteorder("<"))
        items = base64.b64encode(little.tobytes()).decode("ascii")
    else:
        items = value.ravel().tolist()
    plain = value.ndim == 1 and not isinstance(items, str)
    return {kind: items} if plain else {kind: items, "shape": list(value.shape)}


def _decoded(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(_decoded(item) for item in value)
    if not isinstance(value, dict):
        return value
    if "model" in value:
        cls = MODELS[value["model"]]
        names = {item.name for item in dataclasses.fields(cls)}
        need(set(value) == names | {"model"}, f"{cls.__name__} with other fields")
        given = {name: _decoded(value[name]) for name in names}
        for name, hint in get_type_hints(cls).items():
            need(_is_a(hint, given[name]), f"{cls.__name__} with another kind of {name}")
        return cls(**given)
    if "number" in value:
        return float(value["number"])
    return _decoded_array(value)


def _is_a(hint: Any, value: Any) -> bool:
    """Whether a value is what a field was declared as: a number, text, a typed array, a model, a tuple of these."""
    hint = spelled_out(hint)
    origin = get_origin(hint)
    if origin is np.ndarray:
        (scalar,) = get_args(get_args(hint)[1])
        return isinstance(value, np.ndarray) and np.issubdtype(value.dtype, get_origin(scalar) or scalar)
    if origin is tuple:
        return isinstance(value, tuple) and all(_is_a(get_args(hint)[0], item) for item in value)
    if hint in (float, int):
        return isinstance(value, (hint, int)) and not isinstance(value, bool)
    if origin is Literal:
        return value in get_args(hint)
    if hint is Model:
        return type(value) in MODELS.values()
    return isinstance(value, hint)


def _decoded_array(value: Mapping[str, Any]) -> np.ndarray:
    kind, items = next(iter(value.items()))
    if kind == "text":
        # Each text takes as many bytes as the longest.
        size = 4 * len(items) * max(map(len, items), default=0)
        need(size <= MAX_ARRAY_BYTES, f"texts that take {size:,} bytes")
        array = np.array(items, dtype=str)
    elif kind not in _DTYPES:
        raise ValueError(f"an array of {kind[:20]}")
    elif isinstance(items, str):
        little = np.frombuffer(base64.b64decode(items, validate=True), dtype=np.dtype(kind).newbyteorder("<"))
        array = little.astype(np.dtype(kind))
    else:
        array = np.array(items, dtype=np.dtype(kind))
    return array.reshape(value["shape"]) if "shape" in value else array
