"""Every post-training method by name; importing this declares them, in the order in which they are printed."""

from decal_cli.learn import curves, by_region, stacks  # noqa: F401, I001
from decal_cli.learn.method import METHODS, MethodSpec

named = METHODS.named
parse = METHODS.parse


def methods_for_two() -> tuple[MethodSpec, ...]:
    """The methods for scores of two classes, at their defaults."""
    return tuple(spec for spec in METHODS.specs() if spec.declared.for_two)


def usual(of_classes: bool) -> tuple[str, ...]:
    """The methods that most people compare by cross-validation, for scores of two classes or of several."""
    return "isotonic", "temperature" if of_classes else "platt", "stack", "stack-boosting"
