"""The docstrings that users read, also where the interpreter strips them (PYTHONOPTIMIZE=2)."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import cache
from typing import Any


@cache
def docstring(function: Callable[..., Any]) -> str:
    """A function's docstring without indentation, read from its source where it was stripped; '' for none."""
    if function.__doc__ is not None:
        return inspect.getdoc(function) or ""
    import ast
    import textwrap

    try:
        source = inspect.getsource(function)
    except OSError:
        return ""
    node = ast.parse(textwrap.dedent(source)).body[0]
    return (ast.get_docstring(node) if isinstance(node, ast.FunctionDef | ast.ClassDef) else None) or ""
