"""The command line as a fixture, and how many examples hypothesis draws."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from decal_cli.tables import estimate
from tests.helpers.command import Decal, blank_pictures, run_here, run_installed

# Every run draws the same examples; to look for others: pytest --hypothesis-profile=search
settings.register_profile("suite", max_examples=15, deadline=None, derandomize=True, database=None)
settings.register_profile("long", settings.get_profile("suite"), max_examples=25)
settings.register_profile("search", max_examples=500, deadline=None)
settings.load_profile("suite")


@pytest.fixture(scope="module")
def seen_rows_only() -> Iterator[None]:
    """Errors of means as the rows show them, without rows that could have been missed: those of textbooks and peers."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(estimate, "MISSED_ROWS", 0.0)
        yield


@pytest.fixture
def undrawn() -> Iterator[None]:
    """Pictures are not drawn, for tests that do not look at them."""
    with blank_pictures():
        yield


@pytest.fixture
def one_deal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows with features are dealt into folds once, not four times, for tests that do not ask how well they are judged.

    Trees are grown for each fold of each deal, and take longer than all else."""
    monkeypatch.setattr("decal_cli.learn.probe.MAX_DEALS", 1)


@pytest.fixture
def few_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plans measure an error on few samples of the pilot, for tests that do not ask how exact their rows are."""
    monkeypatch.setattr("decal_cli.analysis.plan.MOST_SAMPLES", 8)


@pytest.fixture
def decal(tmp_path: Path) -> Decal:
    """The command line in an empty folder."""
    return Decal(run_here, tmp_path)


@pytest.fixture
def installed(tmp_path: Path) -> Decal:
    """The same as a process of its own, through the installed entry point."""
    return Decal(run_installed, tmp_path)
