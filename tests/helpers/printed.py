"""What a run prints, writes and draws: caught as texts by name, and compared word by word and number by number."""

import os
import re
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from difflib import SequenceMatcher
from itertools import count
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow.parquet as pq
from matplotlib.collections import Collection
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.text import Text

from decal_cli.commands import writing
from decal_cli.render.format import Page
from decal_cli.render.formats import FORMATS, faces_of, write
from tests.helpers.command import blank_pictures

Texts = dict[str, str]
"""By where it stands: a format, a file, 'error', 'pictures'."""

_RELATIVE, _ABSOLUTE = 1e-8, 1e-9
"""How far a number of many digits may be from the record: what is fitted step by step differs between processors."""
NARROW = 62
_NUMBER = re.compile(r"(?<![\w.])[-+]?(?:\d+(?:,\d{3})*(?:\.\d+)?|\.\d+)(?:e[-+]?\d+)?")
_VOLATILE = re.compile(
    r"\bin:[0-9a-f]{8}\b|(?<![.\w])(?=\d*[a-f])[0-9a-f]{12,}\b|\b\d{4}-\d\d-\d\dT[\d:.+Z]+|\b\d+\.\d+\.\d+\w*"
)
"""Digests, times and versions."""
_MOST_LINES, _WIDEST = 400, 2_000
"""Lines of a text that are kept, and signs of a line: of what is longer, its numbers are summed up."""
_MOST_SHOWN = 3


class Watched:
    """What a run leaves behind beside its streams."""

    def __init__(self) -> None:
        self.results: list[Any] = []
        self.drawn: list[str] = []

    def texts(self) -> Texts:
        """The last result in every format that it has but JSON, and what pictures show."""
        texts: Texts = {}
        for result in self.results[-1:]:
            for form in FORMATS.values():
                if form.name not in ("json", "parquet") and form.reads in faces_of(result):
                    texts[form.name] = str(write(result, form.name, Page()))
            if "table" in texts:
                texts[f"table of {NARROW}"] = str(write(result, "table", Page(NARROW)))
        if self.drawn:
            texts["pictures"] = "\n".join(self.drawn)
        return {name: settled(text) for name, text in texts.items()}


@contextmanager
def watched() -> Iterator[Watched]:
    """Within it, results that are shown are kept, pictures are read instead of drawn, and clocks tick when asked."""
    seen = Watched()

    def kept(name: str) -> Any:
        original = getattr(writing, name)

        def keep(result: Any, *more: Any) -> Any:
            seen.results.append(result)
            return original(result, *more)

        return keep

    with ExitStack() as stack:
        stack.enter_context(blank_pictures(lambda figure: seen.drawn.extend(_shown_by(figure))))
        for name in ("write", "as_bytes"):
            stack.enter_context(patch.object(writing, name, kept(name)))
        for name in ("process_time", "perf_counter"):
            clock = count()
            stack.enter_context(patch.object(time, name, lambda clock=clock: next(clock) / 8))
        yield seen


def settled(text: str) -> str:
    """A text without what differs from one run to the next, and a page without its style, script and pictures."""
    text = re.sub(r"<(style|script)>.*?</\1>|<meta [^>]*>|data:image[^']*", "", text, flags=re.DOTALL)
    text = _VOLATILE.sub("*", re.sub(r"(</(?:p|tr|h\d|div|li|dd|figure|summary)>)(?!\n)", "\\1\n", text))
    lines = text.split("\n")
    rest = ["\n".join(lines[_MOST_LINES:])] if len(lines) > _MOST_LINES else []
    return "\n".join(_summed(line) if len(line) > _WIDEST else line for line in (*lines[:_MOST_LINES], *rest))


def _summed(text: str) -> str:
    """How many numbers a text has, their mean, and that of each with its place."""
    read = np.array([float(number.replace(",", "")) for number in _NUMBER.findall(text)])
    # A digest may look like a number beyond all floats.
    numbers = read[np.isfinite(read)]
    place = np.linspace(0, 1, len(numbers))
    means = (f"{of.mean() if len(of) else 0:.6g}" for of in (numbers, np.abs(numbers), numbers * place))
    return f"({len(_NUMBER.sub('', text)):,} signs between {len(numbers):,} numbers of mean {' '.join(means)})"


def texts_written(folder: Path, before: dict[str, float]) -> Texts:
    """The files of a folder that are not as they were."""
    changed = sorted(name for name, at in files_of(folder).items() if before.get(name) != at)
    return {f"file {name}": settled(_read(folder / name)) for name in changed}


def files_of(folder: Path) -> dict[str, float]:
    """When each file below was written."""
    paths = (Path(root, name) for root, _, names in os.walk(folder) for name in names)
    return {path.relative_to(folder).as_posix(): path.stat().st_mtime_ns for path in paths}


def _read(path: Path) -> str:
    if path.suffix == ".parquet":
        return "\n".join(map(str, pq.read_table(path).to_pylist()))
    return path.read_text(encoding="utf-8")


def _shown_by(figure: Any) -> Iterator[str]:
    """The words and the points of every panel, thinned."""
    yield f"picture {' '.join(text.get_text() for text in figure.texts)}"
    for axes in figure.axes:
        words = (axes.get_title(loc="left"), axes.get_title(), axes.get_xlabel(), axes.get_ylabel())
        yield f"panel {' | '.join(words)}: {_points([axes.get_xlim(), axes.get_ylim()])}"
        if axes.get_legend() is not None:
            yield f"legend {' | '.join(text.get_text() for text in axes.get_legend().get_texts())}"
        for artist in axes.get_children():
            if artist is axes.patch:
                continue
            if isinstance(artist, Text) and artist.get_text():
                yield f"text {artist.get_text()}: {_points([artist.get_position()])}"
            elif isinstance(artist, Line2D):
                look = (
                    str(artist.get_label()).rstrip("0123456789"),
                    artist.get_color(),
                    artist.get_linestyle(),
                    artist.get_marker(),
                )
                yield f"line {' '.join(map(str, look))}: {_points(artist.get_xydata())}"
            elif isinstance(artist, Patch):
                yield f"patch {artist.get_facecolor()}: {_points(artist.get_path().vertices @ _turned(artist))}"
            elif isinstance(artist, Collection):
                yield f"marks {str(artist.get_label()).rstrip('0123456789')}: {_points(artist.get_offsets())}"
                for path in artist.get_paths()[:20]:
                    yield f"path {_points(path.vertices)}"


def _turned(artist: Patch) -> np.ndarray:
    """What makes points of a patch that stands at 0 with sides of 1 such of its own."""
    return artist.get_patch_transform().get_matrix()[:2, :2].T


def _points(of: Any) -> str:
    """Twelve of the points, and the mean of all."""
    points = np.ma.filled(np.ma.asarray(of, float), np.nan).reshape(-1, 2)
    if not len(points):
        return "none"
    some = points[np.linspace(0, len(points) - 1, min(len(points), 12)).round().astype(int)]
    mean = [np.nanmean(points, axis=0)] if np.isfinite(points).any(axis=0).all() else []
    # With their zeros: what is read again may be off by one in its last digit.
    return f"{len(points)} " + " ".join(f"{x + 0:#.4g},{y + 0:#.4g}" for x, y in np.round([*some, *mean], 9))


Loose = Sequence[tuple[float, float]]
"""Values that may be off by such a share."""


def text_differences(was: Texts, now: Texts, loose: Loose = ()) -> list[str]:
    """A line for each text that is not what it was."""
    found = []
    for name in {**was, **now}:
        old, new = was.get(name, "").split("\n"), now.get(name, "").split("\n")
        parts = [
            f"line {i + 1} was {' | '.join(old[i:k])!r}, is {' | '.join(new[m:n])!r}"
            for tag, i, k, m, n in SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
            if tag != "equal"
            and not (k - i == n - m and all(map(same_line, old[i:k], new[m:n], [loose] * (k - i))))
        ]  # fmt: skip
        if parts:
            more = f"; and {len(parts) - _MOST_SHOWN} more places" if len(parts) > _MOST_SHOWN else ""
            found.append(f"{name}: {'; '.join(parts[:_MOST_SHOWN])}{more}")
    return found


def same_line(was: str, now: str, loose: Loose = ()) -> bool:
    """Whether words are equal, and numbers but for one in their last digit: sums differ between processors."""
    if was == now:
        return True
    numbers = [[match[0] for match in _NUMBER.finditer(line)] for line in (was, now)]
    words = [_NUMBER.sub("0", line) for line in (was, now)]
    if [*map(len, numbers[0])] != [*map(len, numbers[1])]:
        words = [" ".join(line.split()) for line in words]
    return (
        words[0] == words[1]
        and len(numbers[0]) == len(numbers[1])
        and all(_near(one, other, loose) for one, other in zip(*numbers, strict=True))
    )


def _near(was: str, now: str, loose: Loose) -> bool:
    if was == now:
        return True
    one, other = (float(text.replace(",", "")) for text in (was, now))
    mantissa, _, exponent = was.replace(",", "").partition("e")
    unit = 10.0 ** (int(exponent or 0) - len(mantissa.partition(".")[2]))
    if abs(one - other) <= max(1.001 * unit, _RELATIVE * abs(one), _ABSOLUTE):
        return True
    return any(
        abs(one - size * value) <= 1.001 * unit and abs(one - other) <= share * abs(one) + unit
        for value, share in loose
        for size in (1, 1000, -1, -1000)
    )
