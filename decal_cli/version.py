"""The versions of the package and of its JSON, in a module of its own so that any room may name them."""

from typing import Literal

__version__ = "0.1.0"
SCHEMA: Literal[1] = 1
"""Version of the JSON that decal writes."""
