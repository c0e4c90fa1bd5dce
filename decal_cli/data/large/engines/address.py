"""Where an engine is, as a user writes it, and how it is shown: never with a password."""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import parse_qsl

from decal_cli.errors import DecalError
from decal_cli.hints import Hint

_STORE = re.compile(r"(s3|gs|gcs|abfss?)://", re.IGNORECASE)
SECRETS = frozenset({"password", "sslpassword", "token"})
"""Parameters of an address that must not be shown."""


@dataclass(frozen=True)
class Address:
    """An engine and the table in it.

    engine: its name, which is that of its dialect. target: what its driver opens. shown: the same without anything
    secret. secrets: what must not be shown.
    """

    engine: str
    target: str
    shown: str
    table: str = ""
    secrets: tuple[str, ...] = ()

    def public(self, text: str) -> str:
        """A text of the driver without secrets."""
        for secret in sorted(self.secrets, key=len, reverse=True):
            text = text.replace(secret, "***")
        return text


def is_remote(path: str) -> bool:
    """Whether a path names an object of a store (S3, Google Cloud, Azure), and no file here."""
    return bool(_STORE.match(path))


def parameters_of(query: str, engine: str) -> dict[str, str]:
    """What follows the ? of an address. Errors: DecalError."""
    pairs = parse_qsl(query, keep_blank_values=True)
    if len({name for name, _ in pairs}) < len(pairs):
        raise DecalError(f"{Hint('engine', engine)}: a parameter is given twice", "give each once")
    return dict(pairs)
