"""Rows of several classes: the default table against a sort, single metrics against peers, linear programs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import numpy as np

from benchmarks.timing import Row, clock, paired, seconds


def overconfident(rows: int, classes: int, levels: int | None = None) -> Any:
    """Rows of several classes, on continuous probabilities or on so many levels."""
    from decal_cli.tables.rows import Rows

    rng = np.random.default_rng(7)
    score = rng.dirichlet(np.full(classes, 0.5), levels or rows)
    score = np.asfortranarray(score if levels is None else score[rng.integers(levels, size=rows)])
    truth = score**0.7
    label = (rng.random((rows, 1)) > np.cumsum(truth / truth.sum(axis=1, keepdims=True), axis=1)[:, :-1]).sum(axis=1)
    return Rows(score, label, classes=tuple(map(str, range(classes))))


def several_classes(most_rows: int, runs: int) -> list[Row]:
    """The default table of ten classes against a sort, single metrics against installed peers; linear programs."""
    from decal_cli.analysis.evaluate import all_choices
    from decal_cli.metrics import Inputs, parse, value_of
    from decal_cli.metrics.measure import measure_all
    from decal_cli.tables.rows import Rows
    from decal_cli.task import abstaining

    def fresh(rows: Rows) -> Inputs:
        again = Rows(rows.score, rows.label, classes=rows.classes)  # nothing remembered from the run before
        return Inputs(again, decision=abstaining(0.3).for_classes(rows.classes))

    choices = [choice for choice in all_choices(of_classes=True) if choice.declared.form(True).shown]
    n_many, n_some = min(1_000_000, most_rows), min(100_000, most_rows)
    rows, table = overconfident(n_many, 10), f"default table of {n_many:,} rows x 10 classes, with intervals"
    a, b = paired(lambda: measure_all(choices, fresh(rows), 0.95), lambda: np.sort(rows.score, axis=0), runs)
    found = [Row(table, seconds(a), f"`np.sort` of the columns: {seconds(b)}", a / b, "≤ 4")]
    some = overconfident(n_some, 10)
    for name, peer, theirs in class_peers(some.score, some.label):
        a, b = paired(lambda name=name: value_of(parse(name), fresh(some)), theirs, runs)
        found.append(Row(f"{name}, {n_some:,} rows x 10 classes", seconds(a), f"{peer}: {seconds(b)}", a / b, "< 1"))
    n_levels = min(300, max(100, n_some // 100))
    levels, cells = overconfident(30_000, 3, levels=n_levels), overconfident(n_some, 3)
    for what, some, names in (
        (f"{n_levels} levels", levels, ("u_cal", "cdl(levels=exact)")),
        (f"cells of {n_some:,} rows", cells, ("u_cal", "cdl")),
    ):
        for name in names:
            a = clock(lambda name=name, some=some: value_of(parse(name), fresh(some)))
            found.append(Row(f"{name} of 3 classes, {what}", seconds(a), "60 s", a / 60, "≤ 1"))
    return found


def class_peers(score: np.ndarray, label: np.ndarray) -> Iterator[tuple[str, str, Callable[[], object]]]:
    """Metrics of several classes in other packages, as far as these are installed."""
    from sklearn.metrics import brier_score_loss, log_loss, roc_auc_score

    yield "auc", "scikit-learn roc_auc_score", lambda: roc_auc_score(label, score, multi_class="ovr")
    yield "auc_pairs", "scikit-learn roc_auc_score, ovo", lambda: roc_auc_score(label, score, multi_class="ovo")
    yield "log_loss", "scikit-learn log_loss", lambda: log_loss(label, score)
    yield "brier", "scikit-learn brier_score_loss", lambda: brier_score_loss(label, score)
    with suppress(ImportError):
        from netcal.metrics import ECE

        yield "ece_top(strategy=width)", "netcal ECE(15)", lambda: ECE(15).measure(score, label)
    with suppress(ImportError):
        import torch
        from torchmetrics.classification import MulticlassCalibrationError

        metric, tensors = MulticlassCalibrationError(score.shape[1]), (torch.tensor(score), torch.tensor(label))
        yield "ece_top(strategy=width)", "torchmetrics, 15 bins", lambda: metric(*tensors)
    with suppress(ImportError):
        import torch
        from probmetrics.metrics import Metrics

        metrics, given = Metrics.from_names(["brier"]), (torch.tensor(label), torch.tensor(score))
        yield "brier", "probmetrics brier", lambda: metrics.compute_all_from_labels_probs(*given)
