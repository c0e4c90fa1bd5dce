"""What is generated is fresh, and what README promises works."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

from decal_cli.commands import manual
from decal_cli.metrics import METRICS
from decal_cli.render.documents import schema_text
from tests.helpers.command import ROOT, Decal

README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_man_pages_are_fresh_and_complete() -> None:
    pages = manual.man_pages()
    on_disk = {path.name: path.read_text(encoding="utf-8") for path in (ROOT / "man").glob("*.1")}
    assert on_disk == pages
    assert "reader sees" not in pages["decal.1"]
    for option in ("\\-\\-threshold", "\\-\\-features", "\\-\\-metric", "\\-\\-no\\-intervals"):
        assert option in pages["decal-evaluate.1"]
    for name in METRICS:
        assert f".B {name}".replace("-", "\\-") in pages["decal-metrics.1"]


def test_readme_is_fresh() -> None:
    assert manual.readme(README) == README


def test_the_schema_is_fresh() -> None:
    assert (ROOT / "decal_cli" / "report.schema.json").read_text(encoding="utf-8") == schema_text()


def test_a_stale_page_fails_the_check(tmp_path: Path, monkeypatch) -> None:
    for folder in ("man", "decal_cli"):
        (tmp_path / folder).mkdir()
    (tmp_path / "README.md").write_text("<!-- exits -->\nold\n<!-- end -->\n")
    monkeypatch.setattr(manual, "ROOT", tmp_path)
    assert manual.main(["--check"]) == 1
    assert "old" in (tmp_path / "README.md").read_text()
    assert manual.main([]) == 0
    assert manual.main(["--check"]) == 0
    assert "| 3 | a bug in decal" in (tmp_path / "README.md").read_text()


def test_readmes_settings_are_valid(decal: Decal, tmp_path: Path) -> None:
    (block,) = re.findall(r"```toml\n(.*?)```", README, re.DOTALL)
    assert tomllib.loads(block)["task"] == {"cost_fp": 1, "cost_fn": 19}
    source = (ROOT / "fixtures" / "binary_n2000.csv").read_text()
    (tmp_path / "preds.csv").write_text(source)
    (tmp_path / "decal.toml").write_text(block.replace("preds.parquet", "preds.csv"))
    done = decal("recommend")
    assert done.code == 0
    assert "t* = 0.05" in done.out
    assert decal("gate").code in (0, 1)


def test_readmes_python_runs() -> None:
    (block,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    setup = (
        "import numpy as np, pandas as pd\nrng = np.random.default_rng(0)\n"
        "embeddings = rng.normal(size=(300, 3)); scores = 1 / (1 + np.exp(-embeddings[:, 0]))\n"
        "labels = rng.random(300) < scores\n"
        "frame = pd.DataFrame({'p_a': scores, 'y': labels})\n"
    )
    done = subprocess.run([sys.executable, "-c", setup + block], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_readmes_make_targets_exist() -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert set(re.findall(r"`?make ([a-z]+)", README)) - {"and"} <= targets
