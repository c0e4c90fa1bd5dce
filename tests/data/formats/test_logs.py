"""Logs of lm-eval and Inspect, as the tools wrote them with models that answer at random."""

import json
import math
import zipfile
from pathlib import Path

import numpy as np
import pytest

import decal_cli as decal_api
from decal_cli.data import read
from decal_cli.data.formats import logs
from decal_cli.data.formats.logs import stated
from decal_cli.errors import DecalError
from decal_cli.roles import Columns
from tests.helpers.command import Decal, refusal

LOGS = Path(__file__).parents[3] / "fixtures" / "logs"
QUIZ, SUMS, EVAL, JSON = (
    str(LOGS / name) for name in ("samples_quiz.jsonl", "samples_sums.jsonl", "sums.eval", "sums.json")
)
with zipfile.ZipFile(EVAL) as archive:
    N_LARGEST = max(Path(EVAL).stat().st_size, *(entry.file_size for entry in archive.infolist()))
LM_EVAL, INSPECT = Columns(log="lm-eval"), Columns(log="inspect")


def test_choices_become_the_share_of_the_most_likely_one() -> None:
    data = read([QUIZ], LM_EVAL)
    lines = [json.loads(line) for line in Path(QUIZ).read_text().splitlines()]
    rows = data.models[0].rows
    assert len(rows) == len(lines) == 40 and rows.cluster is None
    for line, score, label in zip(lines, rows.score, rows.label, strict=True):
        powers = [math.exp(float(value)) for value, _ in line["filtered_resps"]]
        assert score == pytest.approx(max(powers) / sum(powers))
        assert label == (powers.index(max(powers)) == int(line["target"])) == line["acc"]
    classes = read([QUIZ], Columns(log="lm-eval", proba=("choice:*",)))
    assert classes.classes == ("0", "1", "2", "3")
    np.testing.assert_allclose(classes.models[0].rows.score.max(axis=1), rows.score)


def test_only_differences_of_log_likelihoods_count(tmp_path: Path) -> None:
    """Choices of many words have a likelihood that no float holds."""
    lines = [json.loads(line) for line in Path(QUIZ).read_text().splitlines()]
    for line in lines:
        line["filtered_resps"] = [[str(float(value) - 1000), greedy] for value, greedy in line["filtered_resps"]]
    (tmp_path / "long.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    short, long = (read([path], LM_EVAL).models[0].rows.score for path in (QUIZ, str(tmp_path / "long.jsonl")))
    assert long.tolist() == pytest.approx(short.tolist())


def test_generated_text_states_its_confidence_and_filters_repeat_documents() -> None:
    data = read([SUMS], LM_EVAL)
    lines = [json.loads(line) for line in Path(SUMS).read_text().splitlines()]
    assert len(lines) == 80 and len(data.models[0].rows) == 40
    assert data.notes[0].endswith("every document once, as filter 'strict' has it, not 'whole'")
    strict = [line for line in lines if line["filter"] == "strict"]
    assert data.models[0].rows.label.tolist() == [int(line["exact_match"]) for line in strict]
    said = [float(line["resps"][0][0].split("Confidence: ")[1].rstrip("%")) / 100 for line in strict]
    assert data.models[0].rows.score.tolist() == pytest.approx(said)


@pytest.mark.parametrize(("path", "most"), [(JSON, Path(JSON).stat().st_size), (EVAL, N_LARGEST)])
def test_a_log_may_be_as_large_as_the_limit(path: str, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs, "MAX_STREAM_BYTES", most)
    read([path], INSPECT)
    monkeypatch.setattr(logs, "MAX_STREAM_BYTES", most - 1)
    with pytest.raises(DecalError, match="too large"):
        read([path], INSPECT)


def test_epochs_are_clusters_in_both_formats_of_inspect() -> None:
    data = read([EVAL], INSPECT)
    rows = data.models[0].rows
    assert len(rows) == 30 and data.columns["cluster"] == "question"
    assert np.unique(np.asarray(rows.unit), return_counts=True)[1].tolist() == [3] * 10
    assert set(rows.score.tolist()) <= {0.5, 0.7, 0.9, 0.95}
    assert "as scorer 'confident' has it, not 'includes'" in data.notes[0]
    log = json.loads(Path(JSON).read_text())
    once = read([JSON], INSPECT).models[0].rows
    assert once.cluster is None
    values = {sample["id"]: sample["scores"]["confident"] for sample in log["samples"]}
    assert once.label.tolist() == [int(score["value"] == "C") for score in values.values()]
    assert once.score.tolist() == [score["metadata"]["confidence"] for score in values.values()]


def test_an_entry_of_an_archive_may_have_a_field_before_its_bytes(tmp_path: Path) -> None:
    """Writers of large archives put 20 bytes there; the end of the archive says where its list of entries begins."""
    content = Path(EVAL).read_bytes()
    with zipfile.ZipFile(EVAL) as archive:
        listed, last = archive.start_dir, max(archive.infolist(), key=lambda entry: entry.header_offset)
    at, end = last.header_offset + 30, content.rindex(b"PK\5\6")
    name = len(last.filename)
    header = content[: at - 2] + (20).to_bytes(2, "little") + content[at : at + name] + bytes(20)
    begins = content[end : end + 16] + (listed + 20).to_bytes(4, "little") + content[end + 20 :]
    (tmp_path / "log.eval").write_bytes(header + content[at + name : end] + begins)
    first, second = (read([path], INSPECT).models[0].rows for path in (EVAL, str(tmp_path / "log.eval")))
    assert second.score.tolist() == first.score.tolist()


@pytest.mark.parametrize(
    ("text", "value"),
    [
        *(("Confidence: 90 percent", 0.9), ("probability .9", 0.9), ("Confidence: 85%", 0.85)),
        *(("I am 7 years old.\nConfidence: 0.25", 0.25), ("probability of 40 %, no: probability 60%", 0.6)),
        *(("Confidence (0-100): 95", 0.95), ("no idea", None), ("350%", None), ("", None), ("42 apples", None)),
        *(("42", None), ("0.9", None), ("90%", None), ("Confidence: 350%", None)),
        *(
            ("Confidence: 7/10", 0.7),
            ("Confidence: 8 out of 10", 0.8),
            ("Certainty (0-10): 9", 0.9),
            ("Certainty: 3 / 2", None),
            ("Certainty: 0/0", None),
        ),
        *(
            ("Confidence: 1e-3", 1e-3),
            ("Confidence - 90%", 0.9),
            ("confidence-90", 0.9),
            ("Confidence (0-100): 0.9", 0.9),
        ),
        *(("Probability of 3 being right: 0.7", 0.7), ("Probability that the answer is 4.2: 90%", 0.9)),
        # It can be read in two ways, or is no probability.
        *((f"Confidence: {text}", None) for text in ("0,85", "-0.5", "95-100%", "80 to 90", "1,000")),
        *(("confidence is 90, answer: 3", 0.9), ("My confidence in this answer (7) is 80%", 0.8)),
    ],
)
def test_stated_confidences(text: str, value: float | None) -> None:
    """A number alone is an answer, not how sure the model is of it."""
    assert stated(text) == (None if value is None else pytest.approx(value))


@pytest.mark.parametrize(
    ("given", "value"),
    [(0.9, 0.9), ("90%", 0.9), (".9", 0.9), (90, 0.9), ("9/10", 0.9), ("Confidence: 85%", 0.85), ("100%", 1.0)],
)
def test_a_confidence_in_the_metadata_may_stand_alone(given: float | str, value: float, tmp_path: Path) -> None:
    log = json.loads(Path(JSON).read_text())
    log["samples"][0]["scores"]["confident"]["metadata"]["confidence"] = given
    (tmp_path / "log.json").write_text(json.dumps(log))
    assert read([str(tmp_path / "log.json")], INSPECT).models[0].rows.score[0] == pytest.approx(value)


def test_the_verbs_read_them(decal: Decal) -> None:
    done = decal("recommend", EVAL, "--from", "inspect", "--utility", "0,0;-4,1", "--names", "abstain,answer")
    assert done.code == 0 and "when score >= 0.8" in done.out and "30 rows in 10 clusters" in done.out
    answer = decal_api.evaluate(QUIZ, log="lm-eval", threshold=0.5, intervals=False)
    assert 0 < answer["brier"].value < 1
    with pytest.raises(DecalError, match="log= reads files"):
        decal_api.evaluate([0.5, 0.6], [0, 1], log="inspect")


def test_bad_logs_are_one_line(decal: Decal, tmp_path: Path) -> None:
    log, whole, first = (
        json.loads(Path(JSON).read_text()),
        Path(EVAL).read_bytes(),
        Path(SUMS).read_text().split("\n")[0],
    )
    silent = json.dumps(json.loads(first) | {"resps": [["ANSWER: 1"]], "filtered_resps": ["ANSWER: 1"]})
    ungraded = json.dumps(json.loads(first) | {"metrics": ["bleu"], "bleu": 7.5})
    with zipfile.ZipFile(tmp_path / "other.zip", "w") as archive:
        archive.writestr("a.txt", "no log")
    for tool, content, words in (
        ("inspect", json.dumps(log | {"version": 3}), "is version 3 of Inspect's logs, not 2"),
        ("inspect", json.dumps(log | {"samples": []}), "no scorer says"),
        ("inspect", json.dumps(log | {"samples": [], "status": "error"}), "status 'error' and scored nothing"),
        *(("inspect", cut, "is not a whole log of Inspect") for cut in (whole[:100], whole[: len(whole) // 2])),
        ("inspect", Path(JSON).read_bytes()[:5000], "is not a whole log of Inspect"),
        ("inspect", (tmp_path / "other.zip").read_bytes(), "it has no header.json"),
        ("lm-eval", f"{first}\n{first[:100]}", "line 2 is not JSON"),
        ("lm-eval", silent, "no answer states a confidence"),
        ("lm-eval", f"{first}\n{silent}", "score missing in 1 of 2 rows"),
        ("lm-eval", ungraded, "no metric says whether the answer is right"),
    ):
        (tmp_path / "log").write_bytes(content if isinstance(content, bytes) else content.encode())
        assert words in refusal(decal("evaluate", "log", "--from", tool)), words
