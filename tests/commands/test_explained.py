"""What explains itself: metrics and the version."""

from tests.helpers.command import Decal, refusal


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
