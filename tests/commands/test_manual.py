"""Man pages are fresh, and a stale page fails the check."""

import tomllib
from pathlib import Path

from decal_cli.commands import manual, pages
from decal_cli.metrics import METRICS
from decal_cli.render.documents import schema_text
from tests.helpers.command import ROOT


def test_man_pages_are_fresh_and_complete() -> None:
    pages = manual.man_pages()
    on_disk = {path.name: path.read_text(encoding="utf-8") for path in (ROOT / "man").glob("*.1")}
    assert on_disk == pages
    assert "reader sees" not in pages["decal.1"]
    for option in ("\\-\\-threshold", "\\-\\-features", "\\-\\-metric", "\\-\\-no\\-intervals"):
        assert option in pages["decal-evaluate.1"]
    for name in METRICS:
        assert f".B {name}".replace("-", "\\-") in pages["decal-metrics.1"]


def test_the_schema_is_fresh() -> None:
    assert (ROOT / "decal_cli" / "report.schema.json").read_text(encoding="utf-8") == schema_text()


def test_a_stale_page_fails_the_check(tmp_path: Path, monkeypatch) -> None:
    for folder in ("man", "decal_cli", "docs"):
        (tmp_path / folder).mkdir()
    (tmp_path / "README.md").write_text("<!-- exits -->\nold\n<!-- end -->\n")
    monkeypatch.setattr(manual, "ROOT", tmp_path)
    monkeypatch.setattr(pages, "_json_of", lambda line: {})
    monkeypatch.setattr(pages, "worth_chart", lambda report, command: "<svg/>")
    assert manual.main(["--check"]) == 1
    assert "old" in (tmp_path / "README.md").read_text()
    assert manual.main([]) == 0
    assert manual.main(["--check"]) == 0
    assert "| 3 | a bug in decal" in (tmp_path / "README.md").read_text()


def test_an_installed_package_brings_every_page_and_the_licence() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert project["tool"]["hatch"]["build"]["targets"]["wheel"]["shared-data"] == {"man": "share/man/man1"}
    assert project["project"]["license"] == "BSD-3-Clause"
    assert all((ROOT / name).is_file() for name in project["project"]["license-files"])
