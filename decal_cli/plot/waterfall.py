"""The chain of gains as bars: the score as it is, recalibrated, with the features."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from decal_cli.analysis.recommend import amounts_in
from decal_cli.metrics import Result
from decal_cli.numbers import MAX_DECIMALS
from decal_cli.plot.style import style_of
from decal_cli.render.terms import StatedTerms


@dataclass(frozen=True)
class _Step:
    """A gain that is added to where the chain stands. estimated: it is no upper limit."""

    name: str
    start: float
    gain: Result
    estimated: bool = True
    look: dict[str, Any] = field(default_factory=dict)

    @property
    def size(self) -> float:
        return self.gain.value or 0.0

    @property
    def ends(self) -> tuple[float, ...]:
        """Where the chain may stand after it."""
        return tuple(self.start + end for end in self.gain.interval or (self.size,))


def waterfall(axes: Any, name: str, number: int, rungs: Mapping[str, Result], task: str, terms: StatedTerms) -> None:
    """Each step starts where the last one ended, on an axis in the user's terms.

    name: of the model and group. task: the decision in words, '' for none. Without features the last step is the upper
    limit that knowing every label would set, where there is one.
    """
    style = style_of(number)
    now = rungs["expected_utility"].value or 0.0
    steps = _steps(rungs, now, style.colour)
    constants = _constants(rungs, now)
    ends = _reach(now, list(constants.values()), steps)
    factor, words = terms.scale(*amounts_in([rungs]))
    low, high = (factor * end for end in ends)
    decimals = min(max(2 - math.floor(math.log10(high - low)), 0), MAX_DECIMALS)

    def said(value: float, sign: str = "") -> str:
        text = f"{value:{sign},.{decimals}f}"
        return text if text.strip("+-0.,") else text.lstrip("+-")

    for row, value in enumerate(constants.values()):
        _constant(axes, row, factor * value, low, high, said(factor * value))
    own = len(constants)
    axes.plot(factor * now, own, marker=style.marker, ms=8, color=style.colour)
    _say(axes, factor * now, own, said(factor * now))
    axes.axvline(factor * now, color=style.colour, lw=0.8, ls=(0, (1, 1.5)))
    for row, step in enumerate(steps, own + 1):
        axes.barh(row, factor * step.size, left=factor * step.start, height=0.55, **{"lw": 0.8, **step.look})
        if step.gain.interval is not None:
            axes.plot([factor * end for end in step.ends], [row, row], color="black", lw=1.1, marker="|", ms=6)
        reach = factor * max(step.start, step.start + step.size, *step.ends)
        _say(axes, min(reach, high), row, said(factor * step.size, "+") + (" →" if reach > high else ""))
    names = [*constants, "act on the score as it is", *(step.name for step in steps)]
    axes.set_yticks(range(len(names)), map(terms.worded, names))
    axes.invert_yaxis()
    # Room for the numbers, which stand to the right of what they belong to.
    axes.set_xlim(low - 0.04 * (high - low), high + 0.22 * (high - low))
    axes.locator_params(axis="x", nbins=5)
    axes.grid(axis="y", visible=False)
    axes.set_title(f"Gains: {name}")
    axes.set_xlabel(f"expected utility {terms.measured_in(words)}" + (f"\n({task})" if task else ""))


def _constants(rungs: Mapping[str, Result], now: float) -> dict[str, float]:
    """What constant decisions are worth: both of two actions, else the best one."""
    never, always = (rungs[name].value if name in rungs else None for name in ("eu_never", "eu_always"))
    if never is not None and always is not None:
        return {"always decide 0": never, "always decide 1": always}
    over = rungs["external_regret"].value if "external_regret" in rungs else None
    return {} if over is None else {"best constant action": now + over}


def _steps(rungs: Mapping[str, Result], now: float, colour: str) -> list[_Step]:
    names = "gain_recalibration", "gain_beyond", "regret_grouping_worst"
    recalibration, beyond, worst = (rungs.get(name, Result(None)) for name in names)
    if recalibration.value is None:
        return []
    steps = [_Step("recalibrated", now, recalibration, look={"color": colour})]
    after = now + recalibration.value
    if beyond.value is not None:
        steps.append(_Step("with the features", after, beyond, look={"color": "0.6"}))
    elif worst.value is not None:
        look = {"facecolor": "0.95", "edgecolor": "0.4", "linestyle": ":"}
        name = "every label known\n(upper limit, no estimate)"
        steps.append(_Step(name, after, Result(worst.value), estimated=False, look=look))
    return steps


def _reach(now: float, constants: Sequence[float], steps: Sequence[_Step]) -> tuple[float, float]:
    """Ends of the axis: around the score, the better constant decision and what is won by estimate.

    A constant decision or an upper limit that lies further away than this range is wide does not set the scale.
    """
    near = [now, *([max(constants)] if constants else [])]
    for step in steps:
        near += [step.start, *step.ends] if step.estimated else []
    low, high = min(near), max(near)
    wide = high - low or max(abs(now), 1e-9)
    others = [*constants, *(step.start + step.size for step in steps)]
    low = min([low, *(value for value in others if low - wide <= value)])
    high = max([high, *(value for value in others if value <= high + wide)])
    return (low, high) if high > low else (low - wide, high + wide)


def _constant(axes: Any, row: int, at: float, low: float, high: float, text: str) -> None:
    """A constant decision as a stroke; beyond the axis, an arrow at its end."""
    outside = not low <= at <= high
    place = float(np.clip(at, low, high))
    mark = {"marker": "<" if at < low else ">", "ms": 7, "mew": 0} if outside else {"marker": "|", "ms": 14, "mew": 2}
    axes.plot(place, row, color="0.35", clip_on=False, **mark)
    _say(axes, place, row, text + (", off the axis" if outside else ""))


def _say(axes: Any, x: float, y: float, text: str) -> None:
    axes.annotate(text, (x, y), xytext=(9, 0), textcoords="offset points", va="center", fontsize=8,
                  bbox={"facecolor": "white", "edgecolor": "none", "pad": 1.0})  # fmt: skip
