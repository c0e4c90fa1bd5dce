"""The six kinds of worlds of the right-action study, drawn at random, with the action that is right in each.

c = E[y | what the score knows] is a logistic score averaged over a hidden signal; the hidden signal is carried by one
or two observed features, smooth or step-like, or by the product of two; q = E[y | everything observed]. The score p is
c itself or a monotone distortion of it, so that E[y | p] = c always. True regrets are 0 or at least MIN_REGRET *
u_delta, or, where small ones are asked for, 0 or within SMALL tolerances; other draws are rejected.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

from decal_cli.analysis.evidence import TOLERANCE
from decal_cli.tables.rows import Rows
from decal_cli.task import BinaryTask

Floats = NDArray[np.float64]
Map = Callable[[Floats], Floats]

MIN_REGRET = 0.02
"""Of u_delta, where a kind has a regret."""
SMALL = (0.5, 2.0)
"""Smallest and largest true regret of worlds with small regrets, in default tolerances of `recommend`."""
N_CHECKED = 100_000
"""Rows on which the true regrets of a world are computed."""

RIGHT_ACTION = {
    "calibrated and sufficient": "done",
    "miscalibrated across t*": "recalibrate",
    "miscalibrated away from t*": "done",
    "calibrated, grouping loss at t*": "post-train",
    "miscalibrated and grouping loss": "post-train",
    "calibrated, grouping loss in a product": "post-train",
}
PRODUCT = "calibrated, grouping loss in a product"
"""Its hidden signal is the product of two features, and neither shows it alone."""


@dataclass(frozen=True)
class Draw:
    """Rows: score p, label y, features (n, d), and the truths c = E[y | p] and q = E[y | p, features]."""

    score: Floats
    label: NDArray[np.int64]
    features: Floats
    c: Floats
    q: Floats

    @property
    def rows(self) -> Rows:
        """What a user would have of them."""
        return Rows(self.score, self.label, features=self.features)


@dataclass(frozen=True)
class Kind:
    """One world of a kind."""

    name: str
    task: BinaryTask
    intercept: float
    spread: float
    strength: float
    signal: Map
    """Features reserved for the hidden signal, shape (n, 2), to its value; mean about 0, variance 1."""
    nodes: Floats
    """Equal-mass quantiles of the signal."""
    distortion: Map
    known: int
    noise: int
    order: NDArray[np.int64]

    def draw(self, n: int, rng: np.random.Generator) -> Draw:
        """n rows of this world."""
        hidden = rng.standard_normal((n, 2))
        known = rng.standard_normal((n, self.known))
        noise = rng.standard_normal((n, self.noise))
        latent = self.intercept + self.spread * known.sum(axis=1) / np.sqrt(self.known)
        q = expit(latent + self.strength * self.signal(hidden)) if self.strength else expit(latent)
        c = self._averaged(latent)
        label = (rng.random(n) < q).astype(np.int64)
        return Draw(self.distortion(c), label, np.hstack((hidden, known, noise))[:, self.order], c, q)

    def _averaged(self, latent: Floats) -> Floats:
        if not self.strength:
            return expit(latent)
        grid = np.linspace(-12, 12, 1201)
        mean = expit(grid[:, None] + self.strength * self.nodes).mean(axis=1)
        return np.interp(latent, grid, mean)

    def regrets(self, rng: np.random.Generator, n: int = N_CHECKED) -> Regrets:
        """Of n rows, integrals of the exact c and q."""
        rows = self.draw(n, rng)
        t, acts = self.task.threshold, rows.score >= self.task.decision_threshold
        right, rate = rows.c >= t, float(rows.q.mean())
        return Regrets(
            calibration=float(np.mean((rows.c - t) * (right.astype(float) - acts))),
            grouping=float(np.mean((rows.q - t) * ((rows.q >= t).astype(float) - right))),
            error=float(np.mean(np.abs(rows.score - rows.c))),
            over_constant=float(np.mean((rows.c - t) * right)) - max(float(np.mean(rows.c - t)), 0.0),
            tolerance=TOLERANCE * min(rate * (1 - t), (1 - rate) * t),
        )


class Regrets(NamedTuple):
    """What a world loses, over u_delta.

    error: E |p - c|. over_constant: what c is worth more than the better constant decision. tolerance: the gain too
    small to matter.
    """

    calibration: float
    grouping: float
    error: float
    over_constant: float
    tolerance: float


def draw_kind(name: str, rng: np.random.Generator, small: bool = False) -> Kind:
    """A random world of this kind, drawn again until its true regrets are those of the kind."""
    while True:
        world = _propose(name, rng)
        if _fits(name, world.regrets(rng), small):
            return world


def _fits(name: str, regrets: Regrets, small: bool) -> bool:
    if name == "calibrated and sufficient":
        return True
    if name == "miscalibrated away from t*":
        return regrets.error >= 0.03
    if RIGHT_ACTION[name] == "recalibrate" and regrets.over_constant < MIN_REGRET:
        return False  # recalibration leads to a constant decision there, and another score is needed
    wanted = []
    if name.startswith("miscalibrated"):
        wanted.append(regrets.calibration)
    if "grouping" in name:
        wanted.append(regrets.grouping)
    low, high = (bound * regrets.tolerance for bound in SMALL) if small else (MIN_REGRET, np.inf)
    return all(low <= regret <= high for regret in wanted)


def _propose(name: str, rng: np.random.Generator) -> Kind:
    grouped = "grouping" in name
    signal, nodes = _signal(rng, name == PRODUCT)
    known, noise = int(rng.integers(1, 5)), int(rng.integers(0, 8))
    threshold = float(rng.uniform(0.1, 0.8))
    return Kind(
        name=name,
        task=_task(threshold, rng),
        intercept=float(rng.uniform(-2.2, 1.5)),
        spread=float(rng.uniform(0.6, 1.8)),
        strength=float(rng.uniform(0.8, 2.5)) if grouped else 0.0,
        signal=signal,
        nodes=nodes,
        distortion=_distortion(name, threshold, rng),
        known=known,
        noise=noise,
        order=rng.permutation(2 + known + noise),
    )


def _task(threshold: float, rng: np.random.Generator) -> BinaryTask:
    scale = float(10 ** rng.uniform(-1, 3))
    return BinaryTask.of_costs(scale * threshold, scale * (1 - threshold))


def _signal(rng: np.random.Generator, product: bool) -> tuple[Map, Floats]:
    shape = "product" if product else str(rng.choice(["step", "smooth", "two steps", "two smooth"]))
    cut = float(rng.uniform(-0.6, 0.6))
    sign = float(rng.choice([-1.0, 1.0]))

    def step(x: Floats) -> Floats:
        return np.where(x > cut, 1.0, -1.0)

    def signal(x: Floats) -> Floats:
        one, two = x[:, 0], x[:, 1]
        if shape == "product":
            return sign * one * two
        if shape == "step":
            return sign * step(one)
        if shape == "smooth":
            return sign * one
        if shape == "two steps":
            return sign * (step(one) + step(two)) / np.sqrt(2)
        return sign * (one + two) / np.sqrt(2)

    nodes = np.sort(signal(np.random.default_rng(1).standard_normal((200_000, 2))))
    return signal, nodes[np.linspace(0, len(nodes) - 1, 401).astype(int)]


def _distortion(name: str, threshold: float, rng: np.random.Generator) -> Map:
    """c to p, increasing; the identity where the kind is calibrated; t* stays fixed where p is off away from t*."""
    if name.startswith("calibrated"):
        return lambda c: c
    if "away" in name:
        low, high = (float(rng.choice([rng.uniform(0.3, 0.65), rng.uniform(1.6, 2.8)])) for _ in range(2))

        def around(c: Floats) -> Floats:
            off = logit(c) - logit(threshold)
            return np.where(
                c >= threshold,
                np.maximum(expit(logit(threshold) + high * off), threshold),
                np.minimum(expit(logit(threshold) + low * off), np.nextafter(threshold, 0)),
            )

        return around
    shift, slope = float(rng.uniform(-1.8, 1.8)), float(rng.uniform(0.5, 2.0))
    return lambda c: expit(shift + slope * logit(c))
