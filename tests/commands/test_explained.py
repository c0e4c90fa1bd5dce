"""What explains itself: metrics, methods and the version."""

import pytest

from decal_cli.learn.methods import METHODS
from decal_cli.render.results.explained import method_explained, online_explained
from decal_cli.sequential import ONLINE
from tests.helpers.command import Decal, refusal
from tests.helpers.results import as_text


class TestAround:
    def test_metrics_are_listed_and_explained(self, decal: Decal) -> None:
        listed = decal("metrics").out
        assert "regret_calibration" in listed
        explained = decal("metrics", "regret_calibration").out
        for words in ("Perez-Lebel et al. 2025", "range", "needs", "interval"):
            assert words in explained
        assert "did you mean" in refusal(decal("metrics", "regret_calibratoin"))

    def test_the_version(self, decal: Decal) -> None:
        assert decal("--version").out.startswith("decal 0.")


class TestMethods:
    def test_all_are_listed_with_a_line_each(self, decal: Decal) -> None:
        done = decal("methods")
        lines = done.out.splitlines()
        assert {line.split()[0] for line in lines if line.startswith("  ")} == {*METHODS, *ONLINE}
        assert max(map(len, lines)) <= 100

    @pytest.mark.parametrize("name", METHODS)
    def test_each_is_explained(self, name: str) -> None:
        text = as_text(method_explained(METHODS[name]))
        assert text.startswith(f"{name}: {METHODS[name].title}\n")
        for words in ("kind ", "needs ", "source "):
            assert f"\n{words}" in text
        for parameter in METHODS[name].parameters:
            assert f"\n{parameter.shown} " in text
        assert max(map(len, text.splitlines())) <= 100

    @pytest.mark.parametrize("name", ONLINE)
    def test_each_forecaster_over_time_is_explained(self, name: str) -> None:
        text = as_text(online_explained(ONLINE[name]))
        assert text.startswith(f"{name}: {ONLINE[name].title}\n")
        assert ("\nrandom " in text) == (name in ("hedge", "ftpl", "cdl-algorithm"))
        for words in ("kind ", "needs ", "source ", "bins=0 "):
            assert f"\n{words}" in text

    def test_one_through_the_command_line(self, decal: Decal) -> None:
        assert "15 equal-mass bins" in decal("methods", "glar").out
        assert "Kleinberg et al. 2023" in decal("methods", "hedge").out
        assert "there is no method 'glarr'; did you mean glar" in refusal(decal("methods", "glarr"))
