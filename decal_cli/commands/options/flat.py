"""A command takes whole groups of options; `flat` spreads their fields into the flat parameters Typer wants."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import MISSING, Field, fields
from typing import Any, get_type_hints


def flat(command: Callable[..., None]) -> Callable[..., None]:
    """Let a command that takes option groups be called with their fields as flat keyword parameters."""
    groups = get_type_hints(command)
    groups.pop("return", None)
    hints = {name: get_type_hints(group, include_extras=True) for name, group in groups.items()}

    @functools.wraps(command)
    def spread(**given: Any) -> None:
        command(**{name: group(**{f.name: given[f.name] for f in fields(group)}) for name, group in groups.items()})

    parameters = [
        inspect.Parameter(f.name, inspect.Parameter.KEYWORD_ONLY, default=_default(f), annotation=hints[name][f.name])
        for name, group in groups.items()
        for f in fields(group)
    ]
    spread.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    spread.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    del spread.__wrapped__
    return spread


def _default(declared: Field[Any]) -> Any:
    """Lists are made by a factory; what has neither default nor factory is required."""
    if declared.default is not MISSING:
        return declared.default
    return inspect.Parameter.empty if declared.default_factory is MISSING else []
