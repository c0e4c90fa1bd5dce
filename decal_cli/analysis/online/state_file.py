"""State files: a replay as JSON that a person can read, and that goes on as the same replay or not at all.

The text is canonical and carries its own SHA-256, as that of a model file does. The digest tells accidents and edits,
not forgery.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, get_args

import numpy as np

from decal_cli.analysis.evaluate import Plan
from decal_cli.analysis.online.plan import Delay, OnlinePlan, Period, online_plan
from decal_cli.analysis.online.replay import Replay, digests_of
from decal_cli.data import Clock, Stream, shown_time
from decal_cli.documents import canonical_json, consistent, digest_of, json_of
from decal_cli.errors import DecalError
from decal_cli.hints import Hint, Verb
from decal_cli.numbers import many
from decal_cli.task import BinaryTask
from decal_cli.version import __version__

STATE_VERSION = 3
KEY = "decal_state"
SHA256_DIGITS = 64
_OURS = f"name a file that `decal online {Hint('state')}` wrote"
_ANEW = f"begin another one with `decal online {Hint('state', 'FILE')}`, a new file"


def state_text(replay: Replay) -> str:
    """The text of the file. Deterministic: apart from its files, however they were cut, the same rows give the same."""
    document = _document(replay)
    return canonical_json({**document, "sha256": digest_of(document)})


def _document(replay: Replay) -> dict[str, Any]:
    plan = replay.plan
    return {
        KEY: STATE_VERSION,
        "decal": __version__,
        "task": {
            "utility": [list(row) for row in plan.task.utility],
            "decision_threshold": plan.task.decision_threshold,
            "names": list(plan.task.names),
        },
        "columns": {
            **{name: getattr(plan, name) for name in ("score", "logit", "time", "group")},
            **({} if plan.cluster is None else {"cluster": plan.cluster}),
        },
        "plan": {
            "methods": [spec.key for spec in plan.methods],
            "clock": plan.clock,
            "delay": plan.delay.text,
            "every": plan.every.text,
            **{name: getattr(plan, name) for name in ("warm_up", "horizon", "seed", "confidence")},
        },
        "files": list(replay.files),
        "state": replay.state(),
    }


def is_state(text: str) -> bool:
    """Whether a text says that it is a state."""
    return f'"{KEY}"' in text[:100]


def replay_of(text: str, shown: str) -> Replay:
    """The replay of a file's text; shown: the file, for messages. Errors: DecalError, one line."""
    document = json_of(text, shown, _OURS)
    if not isinstance(document, dict) or KEY not in document:
        raise DecalError(f"{shown} is not a state of `{Verb('online')}`", _OURS)
    version = document[KEY]
    if version != STATE_VERSION:
        raise DecalError(
            f"{shown} is a state of version {str(version)[:20]}; this decal reads version {STATE_VERSION}", _ANEW
        )
    try:
        digest = document.pop("sha256", None)
        if digest != digest_of(document) or canonical_json({**document, "sha256": digest}) != text:
            raise DecalError(f"{shown} was changed after it was written (its checksum does not match)", _ANEW)
        replay = Replay(_plan(document))
        replay.restore(document["state"])
        replay.files = tuple(map(str, document["files"]))
        consistent(all(len(each) == SHA256_DIGITS for each in replay.files))
        # What is read another way than it is written, such as 1.0 for 1, was not written by decal.
        if canonical_json(_document(replay)) != canonical_json({**document, "decal": __version__}):
            raise ValueError("it holds what no state has")
    except DecalError:
        raise
    except Exception as error:
        # A file whose digest was forged can fail in any way there is.
        reason = " ".join(str(error).split())[:80] or type(error).__name__
        raise DecalError(f"{shown}: the state in it cannot be used ({reason})", _ANEW) from None
    return replay


def _plan(document: Mapping[str, Any]) -> OnlinePlan:
    """The plan of a file, held to what the line would be held to."""
    task, columns, plan = document["task"], document["columns"], document["plan"]
    texts = (columns.get(name) for name in ("score", "time", "group", "cluster"))
    consistent(
        all(each is None or isinstance(each, str) for each in texts),
        plan["clock"] in get_args(Clock),
        (columns["time"] is None) == (plan["clock"] == "rows"),
        isinstance(document["decal"], str),
        len(task["names"]) in (0, 2) and all(isinstance(each, str) for each in task["names"]),
    )
    decided = BinaryTask.of_utility(task["utility"], task["decision_threshold"], task["names"])
    checked = Plan((), decided, confidence=float(plan["confidence"]), seed=int(plan["seed"]))
    begun = OnlinePlan(
        task=decided,
        methods=(),
        clock=plan["clock"],
        **{name: columns.get(name) for name in ("score", "time", "group", "cluster")},
        logit=bool(columns["logit"]),
        delay=Delay.parse(plan["delay"]),
        every=Period.parse(plan["every"]),
        horizon=None if plan["horizon"] is None else int(plan["horizon"]),
        seed=checked.seed,
        confidence=checked.confidence,
    )
    return online_plan(plan["methods"], int(plan["warm_up"]), begun)


def check_same(plan: OnlinePlan, given: Mapping[str, Any], shown: str) -> None:
    """Raise a DecalError where what the line says is not what a state was begun with; given: by field of the plan."""
    for name, value in given.items():
        known = getattr(plan, name)
        if value != known:
            texts = [getattr(each, "text", each) for each in (known, value)]
            other = {"task": "another decision", "methods": "other forecasters"}
            flags = {"task": "the decision", "methods": Hint("method")}
            word = name.replace("_", "-")
            what = f"{f'no {word}' if known is None else f'{word} {texts[0]}'}, not {texts[1]}"
            raise DecalError(
                f"{shown} was begun with {other.get(name, what)}",
                f"leave {flags.get(name, Hint(name))} as it was, or {_ANEW}",
            )


def check_goes_on(replay: Replay, stream: Stream, shown: str) -> None:
    """Raise a DecalError where the rows of a stream come before those that a state has."""
    clock = replay.plan.clock
    if stream.clock != clock:
        raise DecalError(f"{shown}: time is counted in {clock}, and here in {stream.clock}", "give the same column")
    if replay.last_time is None or clock == "rows" or not len(stream) or stream.time[0] >= replay.last_time:
        return
    raise DecalError(
        f"{shown} has rows up to {shown_time(replay.last_time, clock)}, and the first row here is of"
        f" {shown_time(stream.time[0], clock)}: time goes back",
        "give only rows that the state does not have",
    )


MAX_FILES = 1000
"""Files that are remembered."""


def unknown_rows(stream: Stream, replay: Replay, skip: bool, shown: str) -> Stream:
    """The rows of a stream that a replay has not taken before. A file that it has taken before is dropped, with a note.

    skip: whether single rows that it has taken before are dropped too. Errors: DecalError where there are such rows and
    skip is False.
    """
    of_file = np.searchsorted(np.cumsum([each.rows for each in stream.inputs]), stream.row_numbers, side="right")
    kept = np.ones(len(stream), dtype=bool)
    for number, each in enumerate(stream.inputs):
        if each.sha256 in replay.files:
            kept &= of_file != number
            stream = replace(stream, notes=(*stream.notes, f"{each.path} was taken before, and is skipped"))
        else:
            replay.files = (*replay.files, each.sha256)[-MAX_FILES:]
    stream = stream if kept.all() else stream.only(kept)
    if stream.clock != replay.plan.clock:
        return stream
    rows = slice(stream.labelled)
    time = np.zeros(stream.labelled, dtype=int) if stream.clock == "rows" else stream.time[rows]
    score, label = stream.score[rows].astype(float), stream.label[rows]
    digests = digests_of(replay.plan, score, label, stream.group[rows], stream.cluster[rows])
    known = replay.latest.among(time, digests, replay.rows)
    if not known:
        return stream
    if not skip:
        which = "these" if known == stream.labelled else f"the first {known:,} of these"
        raise DecalError(
            f"{shown} has {which} {many(stream.labelled, 'row')} already",
            f"leave them out, or {Hint('skip_known')} takes the rest",
        )
    note = f"skipped the first {known:,} of {len(stream):,} rows, which the state has"
    return replace(stream.only(np.arange(len(stream)) >= known), notes=(*stream.notes, note))
