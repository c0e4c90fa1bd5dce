"""A Postgres server of the tests' own, where its programs are installed."""

import glob
import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg

PASSWORD = "s3cret word"


def programs() -> Path | None:
    """The folder of Postgres's programs; None where there is none, or nobody whom they would run for."""
    named = shutil.which("initdb")
    folders = [str(Path(named).resolve().parent)] if named else sorted(glob.glob("/usr/lib/postgresql/*/bin"))
    try:
        _user()
    except KeyError:
        return None
    return Path(folders[-1]) if folders else None


def _user() -> dict[str, str]:
    """As whom the programs run, as `subprocess` takes it: Postgres refuses to run as root."""
    if os.geteuid() != 0:
        return {}
    return {"user": pwd.getpwnam("postgres").pw_name, "group": "postgres"}


@dataclass(frozen=True)
class Server:
    """A running server: user decal with a password, database decal."""

    port: int
    process: subprocess.Popen[bytes]

    def address(self, table: str = "", user: str = "decal", password: str = PASSWORD) -> str:
        secret = password.replace(" ", "%20")
        asked = f"?table={table}" if table else ""
        return f"postgresql://{user}:{secret}@127.0.0.1:{self.port}/postgres{asked}"

    def connect(self) -> psycopg.Connection:
        return psycopg.connect(self.address(), autocommit=True)


@contextmanager
def running(bin_folder: Path) -> Iterator[Server]:
    """A server on a port of this machine alone, with nothing that makes it durable."""
    # Not in pytest's folder, which only its owner may enter.
    with tempfile.TemporaryDirectory(prefix="decal-postgres-") as folder:
        yield from _running(Path(folder), bin_folder)


def _running(folder: Path, bin_folder: Path) -> Iterator[Server]:
    user: Any = _user()
    if user:
        shutil.chown(folder, "postgres", "postgres")
    secret, data = folder / "secret", folder / "data"
    secret.write_text(PASSWORD, encoding="utf-8")
    secret.chmod(0o644)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    make = [bin_folder / "initdb", "-D", data, "-U", "decal", "-A", "scram-sha-256", "--pwfile", secret, "-E", "UTF8"]
    subprocess.run([*make, "--no-sync", "--locale", "C"], check=True, capture_output=True, cwd=folder, **user)
    options = {"port": port, "listen_addresses": "127.0.0.1", "unix_socket_directories": "", "fsync": "off"}
    words = [word for name, value in options.items() for word in ("-c", f"{name}={value}")]
    log = open(folder / "log", "wb")  # noqa: SIM115
    process = subprocess.Popen(
        [bin_folder / "postgres", "-D", data, *words], cwd=folder, stderr=log, stdout=log, **user
    )
    server = Server(port, process)
    try:
        for _ in range(300):
            with suppress(psycopg.OperationalError), server.connect():
                break
            time.sleep(0.1)
        yield server
    finally:
        process.terminate()
        process.wait(20)
        log.close()
