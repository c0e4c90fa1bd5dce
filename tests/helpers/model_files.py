"""Model files as a forger writes them: with another content and the checksum that belongs to it."""

import hashlib
import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from decal_cli.documents import canonical_json
from decal_cli.errors import DecalError
from decal_cli.learn.curves import Steps
from decal_cli.learn.model_file import Saved, from_text, to_text
from decal_cli.learn.models import Model


def of_model(model: Model) -> Saved:
    """A model of the score alone."""
    return Saved(method="isotonic", model=model, score="p")


SAVED_STEPS = of_model(Steps(np.array([0.25, 0.5]), np.array([0.1, 1 / 3, 0.9])))


def refused(text: str) -> str:
    """The one line that a file is refused with."""
    with pytest.raises(DecalError) as caught:
        from_text(text, "m.json")
    line = str(caught.value)
    assert line.isprintable() and line.startswith(("m.json: ", "m.json is ", "m.json was ", "m.json holds "))
    assert caught.value.fix
    return line


def forged(change: Callable[[dict[str, Any]], None], of: Saved = SAVED_STEPS) -> str:
    """A file with something else in it and the digest that belongs to it."""
    document = json.loads(to_text(of))
    del document["sha256"]
    change(document)
    return with_checksum(document)


def with_checksum(document: dict[str, Any]) -> str:
    """The text of a file that holds this document."""
    body = canonical_json(document)
    return canonical_json({**document, "sha256": hashlib.sha256(body.encode()).hexdigest()})


LEFT_OUT = object()


def put(part: str, value: Any) -> Callable[[dict[str, Any]], None]:
    """Put a value at a place such as 'model.edges', or leave it out."""

    def change(document: dict[str, Any]) -> None:
        *way, last = part.split(".")
        for key in way:
            document = document[key]
        document[last] = value
        if value is LEFT_OUT:
            del document[last]

    return change
