"""Man pages from the live command tree, generated blocks of README and docs, and the JSON schema.

`python -m docs.manual` writes them, `--check` fails where one is stale.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from decal_cli.commands import help
from decal_cli.errors import Exit
from decal_cli.version import __version__
from docs.pages import ROOT, made_anew
from docs.schema import schema_text

SETTINGS = (
    "Values of options, in the current folder or the nearest one above it that has such a file; [tool.decal] of "
    "pyproject.toml is read where there is none. Options on the line win."
)


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
        types = tree.commands.data[name].function.__annotations__
        pages[f"decal-{name}.1"] = _page(f"decal {name}", command, ["decal", *others], types, metrics=name == "metrics")
    return pages


def main(arguments: list[str]) -> int:
    """Write what is generated, or with --check say what is stale."""
    files = {ROOT / "man" / name: text for name, text in man_pages().items()}
    files[ROOT / "decal_cli" / "report.schema.json"] = schema_text()
    files |= made_anew(ROOT)
    stale = [path for path, text in files.items() if not path.exists() or path.read_text(encoding="utf-8") != text]
    stale += [path for path in (ROOT / "man").glob("*.1") if path not in files]
    for path in stale:
        print(f"{'stale' if '--check' in arguments else 'written'}: {path.relative_to(ROOT)}", file=sys.stderr)
        if "--check" not in arguments:
            path.write_text(files[path], encoding="utf-8") if path in files else path.unlink()
    return 1 if stale and "--check" in arguments else 0


def _page(
    title: str,
    command: Any,
    see: list[str],
    types: Mapping[str, str] = MappingProxyType({}),
    commands: Any = None,
    metrics: bool = False,
) -> str:
    """A page. types: of the command's parameters and of what it returns, as they are declared."""
    name = title.replace(" ", "-")
    lines = [f'.TH "{name.upper()}" 1 "" "decal {__version__}" "decal manual"']
    lines += [".SH NAME", _roff(f"{name} - {help.summary(command)}")]
    pieces = ["COMMAND", "..."] if commands else help.usage(command)
    lines += [".SH SYNOPSIS", f".B {_roff(title)}", _roff(" ".join(pieces))]
    lines += [".SH DESCRIPTION", *(line for part in help.description(command) for line in (".PP", _roff(part)))]
    if commands:
        lines.append(".SH COMMANDS")
        for heading, members in help.by_heading(commands.values()).items():
            lines += [f".SS {_roff(heading)}", *(_item(each.name, help.summary(each)) for each in members)]
    lines.append(".SH OPTIONS")
    for heading, parameters in help.panels(command.params):
        lines += [f".SS {_roff(heading)}", *(_item(help.spelled(each), each.help or "") for each in parameters)]
    if metrics:
        from decal_cli.metrics import METRICS

        lines.append(".SH METRICS")
        for metric in METRICS.values():
            shown = ", ".join(parameter.shown for parameter in metric.parameters)
            lines.append(_item(metric.name + (f"({shown})" if shown else ""), metric.summary))
    codes = [code for code in Exit if commands or types.get("return") == "Exit" or code is not Exit.GATE_FAILED]
    lines += [".SH EXIT STATUS", *(_item(str(code.value), code.meaning) for code in codes)]
    if commands or any("Data" in each for each in types.values()):
        lines += [".SH FILES", _item("decal.toml", SETTINGS)]
    lines += [".SH EXAMPLES", ".nf", *(f".B {_roff(example)}" for example in help.examples(command)), ".fi"]
    lines += [".SH SEE ALSO", *(f".BR {_roff(other)} (1){',' if other != see[-1] else ''}" for other in see)]
    return "\n".join(lines) + "\n"


def _item(term: str, text: str) -> str:
    return f".TP\n.B {_roff(term)}\n{_roff(text)}"


def _roff(text: str) -> str:
    escaped = text.replace("\\", "\\e").replace("-", "\\-")
    return "\\&" + escaped if escaped.startswith((".", "'")) else escaped


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
