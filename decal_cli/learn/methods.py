"""Every post-training method by name; importing this declares them, in the order in which they are printed."""

from decal_cli.learn import curves, scalings, by_region, stacks  # noqa: F401, I001
from decal_cli.learn.method import METHODS, MethodSpec

named = METHODS.named
parse = METHODS.parse


def methods_for_two() -> tuple[MethodSpec, ...]:
    """The methods for scores of two classes, at their defaults."""
    return tuple(spec for spec in METHODS.specs() if spec.declared.for_two)
