"""What `decal gate` writes besides its result: files of other formats, for CI systems and people."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from decal_cli.commands.options import RULED
from decal_cli.commands.writing import emit
from decal_cli.errors import DecalError
from decal_cli.render.formats import FORMATS, as_bytes, format_for, offered


@contextmanager
def told_to_ci(form: str, files: dict[str, str]) -> Iterator[None]:
    """Within it, a DecalError is also written in formats for CI systems and people, so that no file is missing."""
    from decal_cli.data.output import write_all
    from decal_cli.render.results.gates import Refused

    try:
        yield
    except DecalError as error:
        refused = Refused(error)
        shown = [face for face in ("blocks", "checks") if hasattr(refused, face)]
        write_all({path: as_bytes(refused, name) for path, name in files.items() if FORMATS[name].reads in shown})
        if FORMATS[form].reads == "checks":
            emit(refused, form)
        raise


def gate_formats(named: list[str], output: str | None, baseline: str | None) -> tuple[str, dict[str, str]]:
    """The format of standard output or --output, and by path the formats of further files."""
    from decal_cli.data.output import check_writable

    files: dict[str, str] = {}
    if baseline:
        format_for(None, baseline, ["json"], "baseline")
        check_writable(baseline, "baseline")
    for text in named:
        name, equals, path = text.partition("=")
        if not equals:
            continue
        check_writable(path, f"--format {name}")
        if path in (*files, output, baseline):
            raise DecalError(f"--format {text}: {path} is named twice", "name a file of its own for each format")
        files[path] = format_for(name, path, offered(RULED))
    alone = [text for text in named if "=" not in text]
    if len(alone) > 1:
        raise DecalError(f"several formats for one output: {', '.join(alone)}", f"give files: --format {alone[1]}=FILE")
    return format_for(alone[0] if alone else None, output, offered(RULED)), files
