"""Objects in a store (S3, Google Cloud, Azure) as files: read by pyarrow, with the credentials of the environment."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

from decal_cli.data.formats.files import Raw, Status
from decal_cli.data.words import first_line
from decal_cli.errors import DecalError, masked

_STORE = re.compile(r"(s3|gs|gcs|abfss?)://", re.IGNORECASE)
_SECRET = re.compile(r"KEY|TOKEN|SECRET|PASSWORD|CREDENTIAL|CONNECTION_STRING", re.IGNORECASE)
_SECONDS = 20.0
"""Of waiting for a store: for a connection, and for an answer."""


def is_remote(path: str) -> bool:
    """Whether a path names an object of a store, and no file here."""
    return _STORE.match(path) is not None


class RemoteRaw(Raw):
    """One object."""

    def __init__(self, path: str) -> None:
        self.store, self.place = _opened(path)
        super().__init__(path, path)

    def _bytes(self) -> Any:
        with _reached(self.path):
            return self.store.open_input_file(self.place)

    def _status(self) -> Status:
        with _reached(self.path):
            info = self.store.get_file_info(self.place)
        if not info.is_file:
            raise DecalError(f"{self.path}: no such object", "check its name, and who may read it")
        return info.size, info.mtime_ns or 0

    @property
    def size(self) -> int:
        return self.identity[0] if self.identity else 0

    def arrow(self) -> Any:
        return super().arrow() if self.gz else self._bytes()

    def sha256(self) -> str:
        """Hex digest of the store's own tag of the content; of the content, where the store has none."""
        import hashlib

        with _reached(self.path), self.store.open_input_stream(self.place) as stream:
            tags = {str(key).lower(): value for key, value in (stream.metadata() or {}).items()}
            tag = next((value for key, value in tags.items() if "etag" in key), None)
            if tag is not None:
                return hashlib.sha256(tag if isinstance(tag, bytes) else str(tag).encode()).hexdigest()
        with self._bytes() as content:
            return hashlib.file_digest(content, "sha256").hexdigest()


def objects_in(path: str) -> list[str] | None:
    """The objects below a path, None where it is an object itself. Errors: DecalError."""
    from pyarrow.fs import FileSelector

    store, place = _opened(path)
    with _reached(path):
        if store.get_file_info(place).is_file:
            return None
        found = store.get_file_info(FileSelector(place, recursive=True, allow_not_found=True))
    start = path.rstrip("/")
    return [start + each.path.removeprefix(place.rstrip("/")) for each in found if each.is_file]


def _opened(path: str) -> tuple[Any, str]:
    """The store of a path, and the place in it. Errors: DecalError."""
    try:
        parts = urlsplit(path)
    except ValueError as error:
        raise DecalError(f"{path}: is not an address ({error})", "name bucket and object") from None
    if (parts.scheme.lower() == "s3" and "@" in parts.netloc) or ":" in parts.netloc or parts.query:
        raise DecalError(
            f"{masked(path).partition('?')[0]}: holds credentials or options",
            "name bucket and object alone, and put credentials in the environment",
        )
    with _reached(path):
        if parts.scheme.lower() == "s3":
            return _s3(parts.netloc), f"{parts.netloc}{parts.path}"
        from pyarrow.fs import FileSystem

        # Without a limit, pyarrow asks Google for credentials for a quarter of an hour.
        limit = f"?retry_limit_seconds={_SECONDS:g}" if parts.scheme.lower() in ("gs", "gcs") else ""
        store, place = FileSystem.from_uri(path + limit)
        return store, place


def _s3(bucket: str) -> Any:
    from pyarrow.fs import AwsStandardS3RetryStrategy, S3FileSystem, resolve_s3_region

    endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")
    region = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
    if endpoint is None and region is None:
        region = resolve_s3_region(bucket)
    waiting = {"connect_timeout": _SECONDS, "request_timeout": _SECONDS}
    retry = AwsStandardS3RetryStrategy(max_attempts=3)
    if endpoint is None:
        return S3FileSystem(region=region, retry_strategy=retry, **waiting)
    scheme, _, host = endpoint.rpartition("://")
    return S3FileSystem(
        region=region, endpoint_override=host.rstrip("/"), scheme=scheme or "https", retry_strategy=retry, **waiting
    )


@contextmanager
def _reached(path: str) -> Iterator[None]:
    """Turn any error of a store into one line about this object, without what is secret."""
    try:
        yield
    except DecalError:
        raise
    except Exception as error:
        text = _without_secrets(first_line(error))
        raise DecalError(
            f"{path}: cannot be read ({text})", "check its name, the network, and the credentials in the environment"
        ) from None


def _without_secrets(text: str) -> str:
    for name, value in os.environ.items():
        if len(value) > 3 and _SECRET.search(name):
            text = text.replace(value, "***")
    return text
