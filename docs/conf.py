"""The docs site: Sphinx builds it from the pages beside this file, without network; `make docs` calls it.

The pages read well as plain Markdown, so that what only a site needs is added here while pages are read: the reading
path, links to files that are no pages, and the reference, which is made of what is declared in the code.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from sphinx.util import logging

import decal_cli
from decal_cli.commands import help
from decal_cli.learn.methods import METHODS
from decal_cli.metrics import METRICS
from decal_cli.render.format import Page
from decal_cli.render.formats import write
from decal_cli.render.results.explained import method_explained, metric_explained, online_explained
from decal_cli.sequential import ONLINE
from docs import manual

project = "decal"
author = copyright = "the decal authors"
version = release = decal_cli.__version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
html_theme = "furo"
html_title = f"decal {version}"
html_show_sourcelink = False
html_copy_source = False
exclude_patterns = ["study"]
myst_heading_anchors = 4
autodoc_typehints = "none"
autodoc_member_order = "bysource"
maximum_signature_line_length = 88
napoleon_google_docstring = False
napoleon_attr_annotations = False
default_role = "code"
smartquotes = False

ROOT = Path(__file__).resolve().parents[1]
REPOSITORY = "https://github.com/OWNER/decal/blob/main/"
READING_PATH = {
    "Reading path": [
        "reference/first-minute",
        "decision",
        "reading-the-advice",
        "gates",
        "classes",
        "online",
        "llm",
        "large-data",
    ],
    "Each tool": ["input", "metrics", "methods", "fit-and-apply", "compare", "sweep", "what-goes-with-what"],
    "From other programs": ["python", "integrations", "json"],
    "Theory and evidence": ["statistics", "simulation", "probe", "study", "papers", "sources", "speed"],
    "Reference": ["reference/api", "reference/commands", "reference/metrics", "reference/methods"],
    "Change it": ["how-it-is-built", "adding"],
}


def _index(text: str) -> str:
    """The page of pages, with the reading path for the side bar."""
    trees = (
        f"```{{toctree}}\n:hidden:\n:caption: {caption}\n\n" + "\n".join(pages) + "\n```\n"
        for caption, pages in READING_PATH.items()
    )
    return text + "\n" + "\n".join(trees)


def _outward(text: str) -> str:
    """A page whose links to files of the repository that are no pages lead to the repository."""
    return re.sub(r"\]\(\.\./(?!docs/)([^)]*)\)", _on_github, text)


def _on_github(link: re.Match[str]) -> str:
    if not (ROOT / link[1].partition("#")[0]).exists():
        logging.getLogger(__name__).warning("a link leads to %s, which is not in the repository", link[1])
    return f"]({REPOSITORY}{link[1]})"


def _from_the_root(text: str) -> str:
    """README as a page of the site: links to docs stay within, the others lead to the repository."""
    text = re.sub(r"\]\((?!docs/|[a-z]+:|#)([^)]*)\)", _on_github, text)
    return text.replace("](docs/", "](/").replace("# decal\n", "# The first minute\n", 1)


def _commands(_: str) -> str:
    """Every command with every option, as the man pages have them."""
    tree = manual.command_tree()
    lines = ["# Commands", "", "What `decal COMMAND --help-all` and the man pages say."]
    for name, command in tree.commands.items():
        lines += ["", f"## decal {name}", "", *(f"{part}\n" for part in help.description(command))]
        lines += ["```sh", *help.examples(command), "```", "", f"`decal {name} {' '.join(help.usage(command))}`"]
        for title, parameters in help.panels(command.params):
            lines += ["", f"**{title}**", ""]
            lines += [f"- `{help.spelled(each)}`: {_plain(each.help or '')}" for each in parameters]
    return "\n".join(lines)


def _plain(text: str) -> str:
    """A sentence of the code in Markdown, where no sign acts."""
    return re.sub(r"([\\*_<\[|$])", r"\\\1", text)


def _metrics(_: str) -> str:
    return _explained(
        "Metrics in full", "decal metrics", {name: metric_explained(each) for name, each in METRICS.items()}
    )


def _methods(_: str) -> str:
    told = {name: method_explained(each) for name, each in METHODS.items()}
    told |= {name: online_explained(each) for name, each in ONLINE.items()}
    return _explained("Methods in full", "decal methods", told)


def _explained(title: str, command: str, told: dict[str, Any]) -> str:
    page = Page(width=88)
    parts = (f"## {name}\n\n```text\n{write(each, 'table', page)}```\n" for name, each in told.items())
    return f"# {title}\n\nWhat `{command} NAME` says of each.\n\n" + "\n".join(parts)


API = {
    "Verbs": [name for name in decal_cli.__all__ if name.islower() and name not in ("__version__", "scorer")],
    "What they take": [
        *("Data", "Engine", "Decision", "Terms", "Statistics", "Costs", "Rules", "OverTime", "Halvings"),
    ],
    "What they return": [name for name in decal_cli.__all__ if name.endswith("Answer")],
    "Over time": ["OnlineForecaster"],
    "scikit-learn": ["Calibrator", "scorer", *(name for name in decal_cli.__all__ if name.endswith("Display"))],
    "Errors": ["DecalError"],
}


def _api(_: str) -> str:
    """Every public name, from its docstring."""
    missing = set(decal_cli.__all__) - {name for names in API.values() for name in names} - {"__version__"}
    if missing:
        logging.getLogger(__name__).warning("the API of docs/conf.py lacks %s", ", ".join(sorted(missing)))
    lines = [
        "# Python, every name",
        "",
        "`import decal_cli as decal`; [Python](../python.md) shows how it is used.",
        "",
    ]
    for title, names in API.items():
        lines += [f"## {title}", ""]
        for name in names:
            kind = "class" if isinstance(getattr(decal_cli, name), type) else "function"
            lines += ["```{eval-rst}", f".. auto{kind}:: decal_cli.{name}"]
            lines += ["   :members:", "   :show-inheritance:"] if name.endswith("Answer") else []
            lines += ["   :members:"] if kind == "class" and not name.endswith("Answer") else []
            lines += ["```", ""]
    return "\n".join(lines)


MADE = {
    "index": _index,
    "reference/api": _api,
    "reference/commands": _commands,
    "reference/metrics": _metrics,
    "reference/methods": _methods,
}


def _read(_: Any, name: str, source: list[str]) -> None:
    source[0] = MADE.get(name, str)(_outward(source[0]))


def _included(_: Any, path: Any, name: str, source: list[str]) -> None:
    source[0] = _from_the_root(source[0])


def _described(_: Any, what: str, name: str, noun: Any, options: Any, lines: list[str]) -> None:
    """The fields of a noun, whose texts are those of the options of the command line, where no sign acts."""
    if what == "class" and name.partition(".")[2] in API["What they take"]:
        of_fields = False
        for at, line in enumerate(lines):
            of_fields = line.startswith(":param") or (of_fields and line.startswith(" "))
            if of_fields:
                # Between backticks stands code.
                parts = re.split("(`[^`]*`)", line)
                lines[at] = "".join(re.sub(r"([*_|])", r"\\\1", part) if part[:1] != "`" else part for part in parts)


def _of_scikit_learn(_: Any, what: str, name: str, *rest: Any) -> bool | None:
    """Whether to skip a method that scikit-learn adds to a class, whose text refers to pages of its own."""
    return True if re.fullmatch(r"set_\w+_request", name) else None


def setup(app: Any) -> None:
    """Listen while pages are read."""
    app.connect("source-read", _read)
    app.connect("include-read", _included)
    app.connect("autodoc-skip-member", _of_scikit_learn)
    app.connect("autodoc-process-docstring", _described, priority=900)
