"""Where an engine is, as a user writes it, and how it is shown: never with a password."""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit, urlunsplit

from decal_cli.errors import DecalError, masked
from decal_cli.hints import Hint

ADDRESS_FORMS = (
    "duckdb:FILE?table=NAME, sqlite:FILE?table=NAME, postgresql://USER@HOST/DATABASE?table=NAME or spark:?table=NAME"
)
_ENGINE = re.compile(r"(duckdb|sqlite|postgres(?:ql)?|spark):(.*)", re.DOTALL)
_STORE = re.compile(r"(s3|gs|gcs|abfss?)://", re.IGNORECASE)
_SECRETS = frozenset({"password", "sslpassword", "token"})


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


def is_address(text: str) -> bool:
    """Whether a text names an engine and not a file."""
    return bool(_ENGINE.match(text))


def is_remote(path: str) -> bool:
    """Whether a path names an object of a store (S3, Google Cloud, Azure), and no file here."""
    return bool(_STORE.match(path))


def refuse_as_file(path: str) -> None:
    """Raise a DecalError where what is given as a file is an address, but of a store."""
    if is_address(path):
        raise DecalError(f"{path} is the address of an engine, and no file", f"give it with {Hint('engine')}")
    if not is_remote(path) and re.match(r"[a-z][a-z0-9+.-]*:/", path, re.IGNORECASE):
        raise DecalError(f"{path} is an address that decal does not read", "download it, and name the file")


def address_of(text: str) -> Address:
    """The engine that a text names. Errors: DecalError, which shows nothing of a text that is not understood."""
    spelt = _ENGINE.fullmatch(text)
    if not spelt:
        raise DecalError(f"{Hint('engine')} names no engine that decal knows", f"write {ADDRESS_FORMS}")
    kind, rest = spelt.groups()
    if kind.startswith("postgres"):
        return _of_server(text)
    place, _, query = rest.partition("?")
    parameters = _parameters(query, kind)
    table = parameters.pop("table", "")
    if parameters:
        raise DecalError(
            f"{Hint('engine', kind)}: {next(iter(parameters))!r} is not a parameter", f"write {ADDRESS_FORMS}"
        )
    if kind != "spark":
        path = unquote(place).removeprefix("//")
        return Address(kind, path or ":memory:", f"{kind}:{path}" if path else kind, table)
    # 'spark:' is the session that is there or as it is configured; after it may stand a master, or sc://HOST:PORT.
    master, _, options = place.partition(";")
    pairs = (each.partition("=") for each in options.split(";"))
    secrets = tuple(value for name, _, value in pairs if name in _SECRETS and value)
    return Address("spark", place, masked(f"spark:{master}") if master else "spark", table, secrets)


def _of_server(text: str) -> Address:
    try:
        parts = urlsplit(text)
        host, port, user, password = parts.hostname or "", parts.port, parts.username, parts.password
    except ValueError:
        raise DecalError(f"{Hint('engine')} is not a URL", f"write {ADDRESS_FORMS}") from None
    if parts.fragment or "@" in parts.path + parts.query or parts.netloc.count("@") > 1:
        # Of a password with / ? # or @ in it, the end would be taken for the host or the database, and asked for there.
        raise DecalError(
            f"{Hint('engine')} is not a URL",
            "write special characters of user and password as %XX, such as %40 for @ and %2F for /",
        )
    parameters = _parameters(parts.query, "postgresql")
    table = parameters.pop("table", "")
    secrets = [value for name, value in parameters.items() if name in _SECRETS]
    secrets += [password, unquote(password)] if password else []
    target = urlunsplit(("postgresql", parts.netloc, parts.path, urlencode(parameters), ""))
    where = f"{user}@{host}" if user else host
    shown = urlunsplit(("postgresql", where if port is None else f"{where}:{port}", parts.path, "", ""))
    return Address("postgres", target, shown, table, tuple(filter(None, secrets)))


def _parameters(query: str, engine: str) -> dict[str, str]:
    pairs = parse_qsl(query, keep_blank_values=True)
    if len({name for name, _ in pairs}) < len(pairs):
        raise DecalError(f"{Hint('engine', engine)}: a parameter is given twice", "give each once")
    return dict(pairs)
