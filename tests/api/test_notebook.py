"""Answers in a real Jupyter kernel: their text, their page, and pictures beside those of the user."""

import base64
from typing import Any

import nbclient
import nbformat
import pytest

from tests.helpers.command import BINARY

pytestmark = pytest.mark.ci

SETUP = f"""
import decal_cli
answer = decal_cli.evaluate({str(BINARY)!r}, score="p", label="y", threshold=0.3, metrics=["brier", "auc"])
text = answer.to_text()
"""
CELLS = {
    "text": "print(str(answer) == f'{answer}' == text, text)",
    "saved": "answer.save('x.txt'); print(open('x.txt').read())",
    "page": "answer",
    "two": "first = answer.plot(); second = answer.plot('brier'); _ = second.set_title('mine')",
    "own before": "from matplotlib import pyplot as plt; backend = plt.get_backend(); _ = plt.plot([1, 2])",
    "beside": "_ = plt.plot([3, 1]); _ = answer.plot()",
    "own after": "_ = plt.plot([2, 1])",
    "own axes": "_, ax = plt.subplots(); _ = answer.plot(ax=ax)",
    "untouched": "print(plt.get_fignums(), plt.get_backend() == backend, plt.rcParams['font.size'])",
    "none": "pass",
    "wrong": "answer.plot('nothing')",
    "after": "pass",
}


@pytest.fixture(scope="module")
def outputs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Any]]:
    """What each cell puts out."""
    folder = tmp_path_factory.mktemp("notebook")
    with pytest.MonkeyPatch.context() as patch:
        for name in ("IPYTHONDIR", "JUPYTER_RUNTIME_DIR", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "MPLCONFIGDIR"):
            patch.setenv(name, str(folder / name))
        patch.delenv("MPLBACKEND", raising=False)
        notebook = nbformat.v4.new_notebook(
            cells=[nbformat.v4.new_code_cell(each) for each in (SETUP, *CELLS.values())]
        )
        client = nbclient.NotebookClient(notebook, timeout=120, kernel_name="python3", allow_errors=True)
        client.execute(cwd=str(folder))
    assert not notebook.cells[0].outputs, notebook.cells[0].outputs
    return {name: cell.outputs for name, cell in zip(CELLS, notebook.cells[1:], strict=True)}


def printed(cell: list[Any]) -> str:
    return "".join(each.text for each in cell if each.output_type == "stream")


def pictures(cell: list[Any]) -> list[str]:
    return [each.data["image/png"] for each in cell if "image/png" in each.get("data", {})]


def test_text_is_what_the_command_prints(outputs: dict[str, list[Any]]) -> None:
    text = printed(outputs["text"])
    assert text.startswith("True ") and "Brier" in text and "AUC" in text
    assert "Brier" in printed(outputs["saved"])


def test_an_answer_is_shown_as_a_page(outputs: dict[str, list[Any]]) -> None:
    (shown,) = outputs["page"]
    assert "<table" in shown.data["text/html"] and "Brier" in shown.data["text/html"]
    assert shown.data["text/plain"].startswith("<EvaluateAnswer")


def test_every_picture_is_seen_once_and_the_users_own_too(outputs: dict[str, list[Any]]) -> None:
    counts = {name: len(pictures(outputs[name])) for name in CELLS}
    assert counts == {
        **dict.fromkeys(CELLS, 0),
        **{"two": 2, "own before": 1, "beside": 2, "own after": 1, "own axes": 1},
    }
    first, second = map(base64.b64decode, pictures(outputs["two"]))
    assert first != second and first.startswith(b"\x89PNG")


def test_nothing_of_pyplot_is_changed(outputs: dict[str, list[Any]]) -> None:
    assert printed(outputs["untouched"]) == "[] True 10.0\n"
    (error,) = outputs["wrong"]
    assert error.ename == "InputError"
