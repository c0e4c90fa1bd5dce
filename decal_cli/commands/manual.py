"""Man pages from the live command tree, and the generated blocks of README and docs.

`python -m decal_cli.commands.manual` writes them, `--check` fails where one is stale.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from decal_cli.commands.pages import made_anew
from decal_cli.errors import Exit
from decal_cli.version import __version__

ROOT = Path(__file__).resolve().parents[2]


def command_tree() -> Any:
    """The command group as Typer builds it."""
    from typer.main import get_command

    from decal_cli.commands.app import app

    return get_command(app)


def man_pages() -> dict[str, str]:
    """File name to roff text: decal.1 and a page for each command."""
    tree = command_tree()
    names = list(tree.commands)
    pages = {"decal.1": _page("decal", tree, see=[f"decal-{name}" for name in names], commands=tree.commands)}
    for name, command in tree.commands.items():
        others = [f"decal-{other}" for other in names if other != name]
        pages[f"decal-{name}.1"] = _page(f"decal {name}", command, see=["decal", *others], metrics=name == "metrics")
    return pages


def main(arguments: list[str]) -> int:
    """Write what is generated, or with --check say what is stale."""
    files = {ROOT / "man" / name: text for name, text in man_pages().items()}
    files |= made_anew(ROOT)
    stale = [path for path, text in files.items() if not path.exists() or path.read_text(encoding="utf-8") != text]
    stale += [path for path in (ROOT / "man").glob("*.1") if path not in files]
    for path in stale:
        print(f"{'stale' if '--check' in arguments else 'written'}: {path.relative_to(ROOT)}", file=sys.stderr)
        if "--check" not in arguments:
            path.write_text(files[path], encoding="utf-8") if path in files else path.unlink()
    return 1 if stale and "--check" in arguments else 0


def _page(title: str, command: Any, see: list[str], commands: Any = None, metrics: bool = False) -> str:
    lines = [f'.TH "{title.replace(" ", "-").upper()}" 1 "" "decal {__version__}" "decal manual"']
    first, *rest = _paragraphs(command.help or "")
    lines += [".SH NAME", _roff(f"{title.replace(' ', '-')} - {first}")]
    arguments = (
        " ".join(_metavar(p) for p in command.params if p.param_type_name == "argument")
        if not commands
        else "COMMAND ..."
    )
    lines += [".SH SYNOPSIS", f".B {title}", _roff(f"[OPTIONS] {arguments}".strip())]
    lines += [".SH DESCRIPTION", *_joined(rest or [first])]
    if commands:
        lines.append(".SH COMMANDS")
        for name, sub in commands.items():
            lines += [".TP", f".B {name}", _roff(_paragraphs(sub.help or "")[0])]
    lines += [".SH OPTIONS", *_options(command)]
    if metrics:
        lines += [".SH METRICS", *_metric_items()]
    lines += [".SH EXIT STATUS"]
    for code in Exit:
        lines += [".TP", f".B {code.value}", _roff(code.meaning)]
    lines += [".SH SEE ALSO", ",\n".join(f".BR {name} (1)".replace(" (", " (") for name in see)]
    return "\n".join(lines).replace(",\n.BR", "\n.BR") + "\n"


def _paragraphs(text: str) -> list[str]:
    return [" ".join(part.split()) for part in text.split("\n\n")]


def _joined(paragraphs: list[str]) -> Iterator[str]:
    for paragraph in paragraphs:
        yield ".PP"
        yield _roff(paragraph)


def _options(command: Any) -> Iterator[str]:
    for parameter in command.params:
        yield ".TP"
        if parameter.param_type_name == "argument":
            yield f".I {_roff(_metavar(parameter))}"
        else:
            flags = ", ".join([*parameter.opts, *parameter.secondary_opts])
            value = "" if parameter.is_flag else f" {_metavar(parameter)}"
            yield f".B {_roff(flags + value)}"
        yield _roff(parameter.help or "")


def _metavar(parameter: Any) -> str:
    return str(parameter.metavar or parameter.name.upper())


def _metric_items() -> Iterator[str]:
    from decal_cli.metrics import METRICS, Choice

    for metric in METRICS.values():
        parameters = ", ".join(f"{parameter.name}={parameter.default}" for parameter in metric.parameters)
        yield ".TP"
        yield f".B {_roff(Choice(metric).key + (f'({parameters})' if parameters else ''))}"
        yield _roff(metric.summary)


def _roff(text: str) -> str:
    escaped = text.replace("\\", "\\e").replace("-", "\\-")
    return "\\&" + escaped if escaped.startswith((".", "'")) else escaped


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
