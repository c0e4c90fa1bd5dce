"""The plugin of pytest, found by its entry point: `decal_gate` judges rules inside a test."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest


@pytest.fixture
def decal_gate() -> Callable[..., Any]:
    """Judge rules, as `decal.gate` does: `decal_gate(data, 0.3, rules=["gain_recalibration<=0.01"])`.

    The test fails where a rule does, or cannot be judged, with a line for each rule and the signature. Returns the
    answer of `decal.gate`. Errors: DecalError, where the input cannot be judged.
    """

    def gate(*given: Any, **fields: Any) -> Any:
        __tracebackhide__ = True
        # Late: every run of pytest loads this module.
        import decal_cli

        answer = decal_cli.gate(*given, **fields)
        if not answer.passed:
            pytest.fail(str(answer), pytrace=False)
        return answer

    return gate
