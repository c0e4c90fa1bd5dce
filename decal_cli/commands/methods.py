"""One run of `decal methods`."""

from __future__ import annotations

from decal_cli.commands.common import emit
from decal_cli.commands.options.explaining import MethodName
from decal_cli.learn.methods import named
from decal_cli.render.results.explained import method_explained, method_list, online_explained
from decal_cli.sequential import ONLINE


def run(wanted: MethodName) -> None:
    """List the methods, or explain the one of this name."""
    name = wanted.name
    if name is None:
        emit(method_list())
    else:
        emit(online_explained(ONLINE[name]) if name in ONLINE else method_explained(named(name)))
