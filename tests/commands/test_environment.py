"""What surrounds a run: streams that are closed, full or not UTF-8, names that are not UTF-8, folders that are gone."""

import gc
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from decal_cli.__main__ import main
from tests.helpers.command import BINARY, DECAL, ROOT, SHELL, Decal, valid_json

pytestmark = pytest.mark.ci
NAMED = f"{BINARY} -s p -y y"
GATE = f"gate {NAMED} -r 'brier<=0.9'"


def shell(line: str, folder: Path, **environment: str) -> tuple[int, str, str]:
    """Exit code, output and errors of a line of bash in which decal is the installed command."""
    done = subprocess.run(
        ["bash", "-c", f'decal() {{ {DECAL} "$@"; }}; {line}'],
        cwd=folder,
        capture_output=True,
        env={**SHELL, "NO_COLOR": "1", **environment},
        check=False,
    )
    return done.returncode, done.stdout.decode(), done.stderr.decode()


@pytest.mark.parametrize(
    ("line", "code", "error"),
    [
        (f"decal {GATE} > /dev/full", 2, "decal: standard output: No space left on device\n"),
        (f"decal {GATE} >&-", 2, "decal: standard output: Bad file descriptor\n"),
        ("decal --help > /dev/full", 2, "decal: standard output: No space left on device\n"),
        (f"decal {GATE} | head -1 >/dev/null; exit ${{PIPESTATUS[0]}}", 0, ""),
        (f"decal {GATE} 2>&-", 0, ""),
        (
            "decal evaluate - <&-",
            2,
            "decal: standard input is empty; give a file with a header and at least one row\n",
        ),
        (f"decal {GATE} -o out.json >&- 2>&-", 0, ""),
        ("decal gate nowhere.csv -r 'brier<=1' 2>/dev/full", 2, ""),
        ("decal gate nowhere.csv -r 'brier<=1' 2>&-", 2, ""),
        (
            # Python would leave half-written bytecode behind.
            "export PYTHONDONTWRITEBYTECODE=1; ulimit -f 1; "
            f"decal study {NAMED} --method platt --seeds 1 --workers 1 --thresholds .3 -o st",
            2,
            "decal: 1 unit to measure, 0 of them measured before\n"
            "decal: st/units.jsonl: File too large; make room, then run the same command again\n",
        ),
        (
            f"mkdir gone; cd gone; rmdir ../gone; decal {GATE}",
            2,
            "decal: the working directory: No such file or directory; change to one that is there\n",
        ),
        (
            f"mkdir gone; cd gone; rmdir ../gone; decal evaluate {NAMED} -o out.json",
            2,
            "decal: output out.json: the working directory: No such file or directory; change to one that is there\n",
        ),
    ],
)
def test_the_exit_code_is_never_that_of_a_failed_gate_or_a_bug(
    tmp_path: Path, line: str, code: int, error: str
) -> None:
    done = shell(line, tmp_path)
    assert (done[0], done[2]) == (code, error)


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("--help", 0),
        (f"evaluate {NAMED} -m brier -f json", 0),
        (f"gate {NAMED} -r 'auc>=0.9'", 1),
        (f"online {NAMED} -t .3 -r 'e_calibration<1' --method online-platt", 1),
    ],
)
def test_a_reader_who_has_gone_changes_nothing(tmp_path: Path, line: str, code: int) -> None:
    """Not the exit code, and nothing is said of it: `decal .. | head -1` is an everyday line."""
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [DECAL, *shlex.split(line)], cwd=tmp_path, env=SHELL, stdout=writing, stderr=subprocess.PIPE, check=False
    )
    os.close(writing)
    assert (done.returncode, done.stderr) == (code, b"")


@pytest.mark.parametrize("encoding", ["ascii", "cp1252"])
def test_an_encoding_without_arrows_has_other_signs_for_them(tmp_path: Path, encoding: str) -> None:
    code, out, error = shell(
        f"decal evaluate {BINARY} -s p -y y -m brier --no-intervals", tmp_path, PYTHONIOENCODING=encoding
    )
    assert (code, error) == (0, "") and "\\u" not in out and re.search(r"^Brier score v 0\.1970$", out, re.MULTILINE)


def test_names_that_are_not_utf8(tmp_path: Path, installed: Decal) -> None:
    name = os.fsdecode(b"a\xff.csv")
    (tmp_path / name).write_bytes(b"".join(BINARY.read_bytes().splitlines(keepends=True)[:201]))
    line = ("evaluate", name, "-s", "p", "-y", "y", "-m", "brier", "--no-intervals")
    assert installed(*line, "-o", os.fsdecode(b"b\xff.json")).code == 0
    written = valid_json((tmp_path / os.fsdecode(b"b\xff.json")).read_bytes().decode())
    assert written["inputs"][0]["path"] == "a\\udcff.csv"
    assert json.loads(installed(*line, "-f", "json").out) == written
    assert "a\\udcff.csv: 200 rows" in installed(*line).out
    assert "\\udcff" in installed("evaluate", os.fsdecode(b"no\xff.csv")).err


def test_an_interrupt_while_the_commands_are_imported(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Interrupting:
        def find_spec(self, name: str, *rest: object) -> None:
            if name == "decal_cli.commands.app":
                raise KeyboardInterrupt

    monkeypatch.delitem(sys.modules, "decal_cli.commands.app")
    monkeypatch.setattr(gc, "disable", lambda: None)
    monkeypatch.setattr(sys, "meta_path", [Interrupting(), *sys.meta_path])
    with pytest.raises(SystemExit) as stop:
        main()
    assert stop.value.code == 130
    assert capsys.readouterr().err == "decal: interrupted\n"


def test_garbage_is_collected_from_the_imports_on(tmp_path: Path) -> None:
    script = tmp_path / "collected.py"
    script.write_text(
        "import gc\n"
        "from decal_cli.__main__ import main\n"
        "try:\n    main()\n"
        "finally:\n    print(gc.isenabled(), gc.get_freeze_count() > 1000)\n"
    )
    code, out, error = shell(f"{sys.executable} {script} {GATE} -o {tmp_path}/out.json", ROOT)
    assert (code, out.splitlines()[-1], error) == (0, "True True", "")


def test_an_interrupt_where_python_loses_it(tmp_path: Path) -> None:
    """In a callback, an exception is printed and forgotten; a run that went on would ignore Ctrl-C."""
    script = tmp_path / "lost.py"
    script.write_text(
        "import os, signal, sys, types, weakref\n"
        "from decal_cli.__main__ import main\n"
        "class Any: pass\n"
        "def run(arguments):\n"
        "    lost = Any()\n"
        "    weak = weakref.ref(lost, lambda _: os.kill(os.getpid(), signal.SIGINT))\n"
        "    del lost\n"
        "    return 0\n"
        "sys.modules['decal_cli.commands.app'] = types.SimpleNamespace(run=run)\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "main()\n"
    )
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "decal: interrupted\n")


def test_pictures_need_no_home(tmp_path: Path, installed: Decal) -> None:
    """Nothing is said, nothing is left behind, and settings of the user's own pictures do not change these."""
    home, scratch = tmp_path / "home", tmp_path / "scratch"
    scratch.mkdir()
    home.touch()
    line = ("sweep", BINARY, "-s", "p", "-y", "y", "--thresholds", ".2,.5", "--no-intervals", "--plot", "a.svg")
    without = installed(*line, HOME=str(home), TMPDIR=str(scratch))
    picture = (tmp_path / "a.svg").read_bytes()
    home.unlink()
    settings = home / ".config" / "matplotlib" / "matplotlibrc"
    settings.parent.mkdir(parents=True)
    settings.write_text("axes.facecolor: red\nno.such.key: 1\n")
    at_home = installed(*line, HOME=str(home), TMPDIR=str(scratch))
    assert (without.code, without.err) == (at_home.code, at_home.err) == (0, "")
    assert (tmp_path / "a.svg").read_bytes() == picture
    assert not [*scratch.iterdir()] and not (home / ".cache").exists()


def test_too_little_memory(tmp_path: Path) -> None:
    """OpenBLAS would end the process, with the code of a failed gate or of an interrupt; other libraries abort it."""
    rows = np.random.default_rng(0).random((400_000, 2))
    table = pa.table({"p": rows[:, 0], "y": (rows[:, 1] < rows[:, 0]).astype(np.int8)})
    pq.write_table(table, tmp_path / "big.parquet")
    gate = "gate big.parquet -s p -y y -r 'brier<=0.9'"
    for kilobytes, line in ((40_000, "metrics brier"), (40_000, gate), (150_000, gate), (440_000, gate)):
        code, out, error = shell(f"ulimit -v {kilobytes}; decal {line}", tmp_path)
        assert (code, out, error.count("\n")) == (2, "", 1) and "not enough memory" in error, (kilobytes, error)
    assert shell("ulimit -v 16000000; decal gate big.parquet -s p -y y -r 'brier<=0.9'", tmp_path)[::2] == (0, "")
    assert shell("ulimit -v 40000; decal --version", tmp_path)[0] == 0


def test_no_memory_for_its_own_modules(tmp_path: Path) -> None:
    """How much they take is for Python to say, so an import fails as with too little."""
    lines = (
        "import sys",
        "class Full:",
        "    def find_spec(self, name, *rest):",
        "        if name == 'decal_cli.commands.app': raise MemoryError",
        "sys.meta_path.insert(0, Full())",
        "from decal_cli.__main__ import main",
        "main()",
    )
    (tmp_path / "full.py").write_text("\n".join(lines))
    code, out, error = shell(f"{sys.executable} full.py", tmp_path)
    assert (code, out, error) == (2, "", "decal: there is not enough memory; give it more\n")


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("x.so: failed to map segment from shared object", 2),
        ("Memory mapping file failed: Cannot allocate memory", 2),
        ("anything else", 3),
    ],
)
def test_a_library_that_finds_no_memory(decal: Decal, monkeypatch: pytest.MonkeyPatch, text: str, code: int) -> None:
    def fail(*_: object, **_more: object) -> None:
        raise ImportError(text)

    monkeypatch.setattr("decal_cli.render.results.explained.metric_list", fail)
    done = decal("metrics")
    assert done.code == code and done.err.count("\n") == 1


ENVIRONMENT = "#!/usr/bin/env bash\n[ $1 = lint ] || env\n"
"""A program that prints its environment, in the place of one that would be started."""


def test_continuous_integration_relies_on_nothing_of_its_machine(tmp_path: Path) -> None:
    for name in ("bash", "dirname", "env", "grep"):
        (tmp_path / name).symlink_to(str(shutil.which(name)))
    printed = started_with(tmp_path / "make", str(ROOT / ".ci" / "run"), PATH=str(tmp_path))
    assert {"PIP_INDEX_URL", "https_proxy", "SSL_CERT_FILE"} <= printed and "PYTHONUNBUFFERED" not in printed


def test_tests_see_what_a_shell_has(tmp_path: Path) -> None:
    (tmp_path / ".ready").touch()
    printed = started_with(tmp_path / "bin" / "python", "make", "-s", "-C", str(ROOT), "test", f"VENV={tmp_path}")
    assert printed - {"PWD", "SHLVL", "_", "OLDPWD", "OMP_NUM_THREADS"} == SHELL.keys()


def started_with(program: Path, *line: str, **more: str) -> set[str]:
    """The names in the environment that a line starts this program with."""
    program.parent.mkdir(exist_ok=True)
    program.write_text(ENVIRONMENT)
    program.chmod(0o755)
    given = {"PYTHONUNBUFFERED": "1", "PIP_INDEX_URL": "x", "https_proxy": "x", "SSL_CERT_FILE": "x"}
    done = subprocess.run(line, env={**SHELL, **given, **more}, capture_output=True, text=True, check=True)
    return {entry.split("=")[0] for entry in done.stdout.splitlines()}
