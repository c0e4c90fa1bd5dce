"""Values of the line as what they stand for: numbers and choices, or one line that leads to what is meant."""

from __future__ import annotations

from typing import Any, get_args, get_origin

from decal_cli.declarations.option import Option
from decal_cli.errors import DecalError

EXAMPLES = {"threshold": "0.3", "decision_threshold": "0.3", "confidence": "0.9", "abstain": "0.2"}
"""Numbers that an option may have; of any other, 1 is one."""


def value_of(key: str, kind: Any, declared: Option, given: Any) -> Any:
    """The value of an option. Errors: DecalError."""
    if get_origin(kind) is list:
        (one,) = get_args(kind)
        return [value_of(key, one, declared, each) for each in given or ()]
    if not isinstance(given, str):
        return given
    if declared.choices and given not in declared.choices:
        # Late: help has no use for it.
        from decal_cli.declarations.spec import near

        listed = ", ".join(declared.choices)
        flag = declared.flag if declared.flag.startswith("--") else _option(key)
        raise DecalError(f"{flag} {given!r} is not one of {listed}", near(given, declared.choices))
    if kind not in (int, float):
        return given
    try:
        return kind(given)
    except ValueError:
        raise DecalError(f"{_option(key)} {given!r} is not a {_noun(kind)}", _meant(key, kind, given)) from None


def _noun(kind: type) -> str:
    return "whole number" if kind is int else "number"


def _option(key: str) -> str:
    return f"--{key.replace('_', '-')}"


def _meant(key: str, kind: type, given: str) -> str:
    """What to write for it."""
    if ":" in given and key in ("cost_fp", "cost_fn", "threshold"):
        return f"--odds {given} is the cost of a false positive to that of a false negative"
    for text, scale in ((given.removesuffix("%"), 100), (given.replace(",", "."), 1)):
        try:
            if text != given:
                return f"write {_option(key)} {kind(float(text) / scale):g}"
        except ValueError:
            continue
    return f"give for example {_option(key)} {EXAMPLES.get(key, '1')}"
