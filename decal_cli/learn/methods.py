"""Every post-training method by name; importing this declares them, in the order in which they are printed."""

from decal_cli.learn import by_region, curves, stacks
from decal_cli.learn.method import METHODS, MethodSpec

# Whichever of these rooms was imported first: sorting keeps the order within one.
_ROOMS = [room.__name__ for room in (curves, by_region, stacks)]
for _name in sorted(METHODS, key=lambda name: _ROOMS.index(METHODS[name].function.__module__)):
    METHODS[_name] = METHODS.pop(_name)

named = METHODS.named
parse = METHODS.parse


def methods_for_two() -> tuple[MethodSpec, ...]:
    """The methods for scores of two classes, at their defaults."""
    return tuple(spec for spec in METHODS.specs() if spec.declared.for_two)


def usual(of_classes: bool) -> tuple[str, ...]:
    """The methods that most people compare by cross-validation, for scores of two classes or of several."""
    return "isotonic", "temperature" if of_classes else "platt", "stack", "stack-boosting"
