"""Logs of language models that answered questions -> rows: how sure the model was, and whether it was right.

Read as the tools write them: lm-eval 0.4 (`samples_*.jsonl`) and Inspect (`.json` or `.eval`, version 2 of its logs).
Label 1 is a right answer, so that action 1 is to answer and action 0 to abstain.
"""

from __future__ import annotations

import json
import math
import re
import zipfile
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from io import BytesIO
from typing import Any

from decal_cli.data.formats.files import Held, Raw, no_rows, translated
from decal_cli.data.formats.jsonlines import JsonLinesSource
from decal_cli.data.words import NUMBER, quote
from decal_cli.errors import DecalError
from decal_cli.hints import Hint
from decal_cli.limits import MAX_STREAM_BYTES

SCORE, LABEL, CLUSTER, ID, CHOICE, TARGET = "p", "y", "question", "id", "choice", "target"
"""Columns of the rows: confidence, right or wrong, question, question and epoch, of each choice, the right choice."""
RIGHT = {"C": 1, "I": 0, "N": 0, "P": 0}
"""Grades of Inspect: correct, incorrect, no answer, partially correct."""
LM_EVAL_KEYS = ("doc_id", "filter", "filtered_resps", "target", "metrics")
"""What every sample of lm-eval has."""
VERSION = 2
"""The version of Inspect's logs that can be read."""
ZSTD = 93
"""The number by which zip files name Zstandard, with which Inspect compresses the files of an archive."""
CONFIDENCES = ("confidence", "probability", "prob", "p")
"""Names that a scorer may have for the model's confidence."""
_SCALE = r"\(\s*(?:[01]\s*(?:[-–]|to)|out of|/)\s*(?P<scale>\d+)\s*\)"
_ASIDE = re.compile(rf"(?!{_SCALE})\([^()\n]*\)")
_STATING = re.compile(
    # 'probability that 3 is right: 0.7' states what stands after the colon.
    rf"(?:confiden\w*|probabilit\w*|certain\w*|likelihood)(?:\s*{_SCALE})?"
    r"(?:\s+(?:of|that|for|in)\b(?:[^\n:=.,;%]|[.,](?=\d)){0,60}[:=]\s*(?=[-+.]?\d)"
    r"|[^\d\n%]{0,30}?(?=(?<![A-Za-z])-?\.?\d))",
    re.IGNORECASE,
)
_AMOUNT = re.compile(
    r"(?P<number>[-+]?[\d.,]*\d(?:e[-+]?\d+)?)\s*(?P<sign>%|percent\b)?"
    r"(?:\s*(?:/|out\s+of)\s*(?P<of>\d+))?(?P<range>\s*(?:[-–]|to\b)\s*\d)?",
    re.IGNORECASE,
)
Row = dict[str, Any]


class LogSource(Held):
    """The rows of a log. repeats: whether some questions were answered more than once. notes: of what was dropped."""

    def __init__(self, raw: Raw, rows: Sequence[Row], notes: Sequence[str]) -> None:
        import pyarrow as pa

        if not rows:
            raise no_rows(raw.shown)
        self.notes = tuple(notes)
        self.repeats = 1 < len({row[CLUSTER] for row in rows}) < len(rows)
        names = dict.fromkeys(name for row in rows for name in row)
        super().__init__(raw.shown, pa.table({name: [row.get(name) for row in rows] for name in names}), raw)
        if all(row[SCORE] is None for row in rows):
            raise DecalError(
                f"{raw.shown}: no answer states a confidence",
                "ask the model for one, such as 'Confidence: 90%', or log the log-likelihoods of choices",
            )


def of_lm_eval(raw: Raw) -> LogSource:
    """The samples that lm-eval writes with --log_samples: a line for each document and filter."""
    inspect = f"{Hint('from', 'inspect')} for a log of Inspect"
    fix = f"give samples_*.jsonl as `lm_eval {Hint('log')}_samples` writes them, or {inspect}"
    try:
        lines = list(JsonLinesSource(raw, raw.head()).objects())
    except DecalError as error:
        raise DecalError(error.problem, fix) from None
    for number, line in lines:
        lacking = [key for key in LM_EVAL_KEYS if key not in line]
        if lacking:
            problem = f"{raw.shown}, line {number} is not a sample of lm-eval 0.4: it lacks {lacking[0]!r}"
            raise DecalError(problem, fix)
    filters = list(dict.fromkeys(str(line["filter"]) for _, line in lines))
    kept = [(number, line) for number, line in lines if str(line["filter"]) == filters[0]]
    notes = []
    if len(filters) > 1:
        others = ", ".join(quote(name) for name in filters[1:])
        notes.append(f"{raw.shown}: every document once, as filter {quote(filters[0])} has it, not {others}")
    rows = [_sample(raw, number, line) for number, line in kept]
    sizes = {len(line["filtered_resps"]) for _, line in kept}
    if len(sizes) > 1:
        rows = [{name: value for name, value in row.items() if not name.startswith(f"{CHOICE}:")} for row in rows]
    epochs: Counter[str] = Counter()
    for row in rows:
        epochs[row[CLUSTER]] += 1
        row[ID] = f"{row[CLUSTER]}/{epochs[row[CLUSTER]]}"
    return LogSource(raw, rows, notes)


def _sample(raw: Raw, number: int, line: Mapping[str, Any]) -> Row:
    """The row of one line: from log-likelihoods the most likely choice, from a text the confidence that it states."""
    where = f"{raw.shown}, line {number}"
    responses = line["filtered_resps"]
    question = str(line.get("doc_hash") or line["doc_id"])
    likelihoods = _likelihoods(responses)
    if not likelihoods:
        metric = next((name for name in line["metrics"] if _graded(line.get(name)) is not None), "")
        if not metric:
            raise DecalError(f"{where}: no metric says whether the answer is right", "log a metric such as exact_match")
        # A filter keeps the answer alone: how sure the model is stands in what it wrote.
        sure = _first_stated(map(str, (_first(line.get("resps")), _first(responses))))
        return {CLUSTER: question, SCORE: sure, LABEL: _graded(line[metric])}
    top = max(likelihoods)
    powers = [math.exp(each - top) for each in likelihoods]
    shares = [power / sum(powers) for power in powers]
    best = likelihoods.index(top)
    target = str(line["target"])
    right = line.get("acc")
    if _graded(right) is None:
        if not target.isdigit():
            raise DecalError(f"{where}: target {quote(target)} is not the number of a choice", "log the metric acc")
        right = int(target) == best
    choices = {f"{CHOICE}:{k}": share for k, share in enumerate(shares)} if target.isdigit() else {}
    return {CLUSTER: question, SCORE: shares[best], LABEL: _graded(right), TARGET: target, **choices}


def _first(values: Any) -> Any:
    """The first text of lists within lists."""
    while isinstance(values, list) and values:
        values = values[0]
    return values


def _likelihoods(responses: Any) -> list[float] | None:
    """The log-likelihood of each choice, where these are such: pairs of a number and whether it is the greedy one."""
    if not isinstance(responses, list) or len(responses) < 2:
        return None
    values = []
    for each in responses:
        if not isinstance(each, list) or len(each) != 2 or str(each[1]) not in ("True", "False"):
            return None
        try:
            values.append(float(each[0]))
        except (TypeError, ValueError):
            return None
    return values if all(math.isfinite(value) for value in values) else None


def _graded(value: Any) -> int | None:
    """Whether a grade is that of a right answer; None where it is no grade. Only a full score is right."""
    if isinstance(value, str):
        if value in RIGHT:
            return RIGHT[value]
        try:
            value = float(value)
        except ValueError:
            return None
    if isinstance(value, (bool, int, float)) and 0 <= value <= 1:
        return int(value == 1)
    return None


def stated(text: str) -> float | None:
    """The probability that a text states last: 'Confidence: 90%', 'certainty (0-10): 9'.

    None where it states none, or one that can be read in two ways, as '0,85' and '90-95%'. A number without such a word
    is an answer.
    """
    # 'Confidence (that is, of my answer 42): 90' states one number, not two.
    text = _ASIDE.sub("", text)
    stating = [*_STATING.finditer(text)]
    return _amount(_AMOUNT.match(text, stating[-1].end()), stating[-1]["scale"]) if stating else None


def stated_alone(text: str) -> float | None:
    """The probability that a text is: '90%', '0.9', '90 percent', '9/10'; None where it is none."""
    return _amount(_AMOUNT.fullmatch(text.strip()))


def _amount(found: re.Match[str] | None, scale: str | None = None) -> float | None:
    if not found or found["range"] or not NUMBER.fullmatch(found["number"]):
        return None
    value, scale = float(found["number"]), found["of"] or (scale if scale != "100" else None)
    # Above 1 a number without a scale is per cent.
    most = 100.0 if found["sign"] or (scale is None and value > 1) else float(scale or 1)
    return value / most if 0 <= value <= most and 0 < most < math.inf else None


def _first_stated(texts: Iterable[str]) -> float | None:
    return next((value for value in map(stated, texts) if value is not None), None)


def of_inspect(raw: Raw) -> LogSource:
    """A log of Inspect, in either of its formats."""
    lm_eval = f"{Hint('from', 'lm-eval')} for samples of lm-eval"
    fix = f"give a log that Inspect has finished, of a version from 0.3 on, or {lm_eval}"
    with translated(raw.shown, "a log of Inspect"), raw.open() as stream:
        content = stream.read(MAX_STREAM_BYTES + 1)
    if len(content) > MAX_STREAM_BYTES:
        raise DecalError(f"{raw.shown} is too large for a log", "write fewer samples to a log")
    try:
        if content.startswith(b"PK"):
            with zipfile.ZipFile(BytesIO(content)) as archive:
                entries = {entry.filename: entry for entry in archive.infolist()}
                if "header.json" not in entries:
                    raise ValueError("it has no header.json")
                header = json.loads(_entry(content, archive, entries["header.json"]))
                named = sorted(name for name in entries if name.startswith("samples/") and name.endswith(".json"))
                samples = [json.loads(_entry(content, archive, entries[name])) for name in named]
        else:
            header = json.loads(content)
            if not isinstance(header, dict) or "eval" not in header:
                raise ValueError("it has no 'eval'")
            samples = list(header.get("samples") or [])
    except (ValueError, KeyError, TypeError, RecursionError, OSError, zipfile.BadZipFile, NotImplementedError) as error:
        reason = str(error).splitlines()[0][:60] if str(error) else type(error).__name__
        raise DecalError(f"{raw.shown} is not a whole log of Inspect ({reason})", fix) from None
    if header.get("version") != VERSION:
        raise DecalError(
            f"{raw.shown} is version {header.get('version')!r} of Inspect's logs, not {VERSION}",
            "convert it: inspect log convert",
        )
    notes = []
    graded = [sample for sample in samples if sample.get("scores")]
    if header.get("status") != "success":
        ended = f"{raw.shown}: the run ended with status {quote(str(header.get('status')))}"
        if not graded:
            raise DecalError(f"{ended} and scored nothing", "run it again, and give the log of a run that succeeds")
        notes.append(ended)
    if len(graded) < len(samples):
        notes.append(f"{raw.shown}: dropped {len(samples) - len(graded):,} of {len(samples):,} samples (not scored)")
    scorer = _scorer(raw.shown, graded, notes)
    return LogSource(raw, [_answer(sample, scorer) for sample in graded], notes)


def _entry(content: bytes, archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> bytes:
    """The bytes of a file of an archive; Python reads those that are compressed by Zstandard only from 3.14 on."""
    if entry.file_size > MAX_STREAM_BYTES:
        raise ValueError(f"{entry.filename} is too large")
    if entry.compress_type != ZSTD:
        return archive.read(entry)
    import pyarrow as pa

    # The local header: 30 bytes, then the name and a field of their own lengths.
    at = entry.header_offset
    start = at + 30 + int.from_bytes(content[at + 26 : at + 28], "little")
    start += int.from_bytes(content[at + 28 : at + 30], "little")
    packed = content[start : start + entry.compress_size]
    return bytes(pa.decompress(packed, decompressed_size=entry.file_size, codec="zstd", asbytes=True))


def _scorer(shown: str, samples: Sequence[Mapping[str, Any]], notes: list[str]) -> str:
    """The first scorer that says whether answers are right."""
    names = list(dict.fromkeys(name for sample in samples for name in sample["scores"]))
    for name in names:
        if any(_graded(_score(sample, name).get("value")) is not None for sample in samples):
            if len(names) > 1:
                others = ", ".join(quote(other) for other in names if other != name)
                notes.append(f"{shown}: answers are right or wrong as scorer {quote(name)} has it, not {others}")
            return name
    raise DecalError(f"{shown}: no scorer says whether answers are right", "log a scorer whose values are C, I or 0, 1")


def _score(sample: Mapping[str, Any], scorer: str) -> Mapping[str, Any]:
    return sample["scores"].get(scorer) or {}


def _answer(sample: Mapping[str, Any], scorer: str) -> Row:
    """One row of a sample: whether the answer is right, and the confidence that the scorer or the answer states."""
    score = _score(sample, scorer)
    question, epoch = str(sample.get("id")), sample.get("epoch", 1)
    given = {**(sample.get("metadata") or {}), **(score.get("metadata") or {})}
    named = next((given[name] for name in CONFIDENCES if given.get(name) is not None), None)
    output = sample.get("output") or {}
    answer = output.get("completion")
    if not answer:
        choices = output.get("choices") or [{}]
        answer = (choices[0].get("message") or {}).get("content", "")
        if isinstance(answer, list):
            answer = "\n".join(str(part.get("text", "")) for part in answer if isinstance(part, dict))
    texts = [str(answer), str(score.get("explanation") or "")] if named is None else [str(named)]
    alone = stated_alone(str(named))
    return {
        CLUSTER: question,
        ID: f"{question}/{epoch}",
        SCORE: _first_stated(texts) if alone is None else alone,
        LABEL: _graded(score.get("value")),
    }


TOOLS: dict[str, Callable[[Raw], LogSource]] = {"lm-eval": of_lm_eval, "inspect": of_inspect}
"""What reads the logs of each tool, by the names that --from takes."""
