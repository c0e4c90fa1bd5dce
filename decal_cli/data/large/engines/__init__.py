"""Engines that hold the rows: the statement that counts them there, what it found wrong, and connections."""

import importlib
import pkgutil

from decal_cli.data.large.engines import kinds
from decal_cli.data.large.engines.connections import ENGINES

for _module in pkgutil.iter_modules(kinds.__path__):
    importlib.import_module(f"{kinds.__name__}.{_module.name}")

DIALECTS = {name: engine.dialect for name, engine in ENGINES.items()}
"""The dialects, by the names that users give."""
