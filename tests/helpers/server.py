"""A Postgres server of the tests' own, where its programs are installed."""

from __future__ import annotations

import glob
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import psycopg

PASSWORD = "s3cret word"


def programs() -> Path | None:
    """The folder of Postgres's programs, None where there is none."""
    named = shutil.which("initdb")
    folders = [str(Path(named).resolve().parent)] if named else sorted(glob.glob("/usr/lib/postgresql/*/bin"))
    return Path(folders[-1]) if folders else None


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
def running(folder: Path, bin_folder: Path) -> Iterator[Server]:
    """A server on a port of this machine alone, with nothing that makes it durable."""
    # Postgres refuses to run as root.
    user = {"user": "postgres", "group": "postgres"} if os.geteuid() == 0 else {}
    if user:
        shutil.chown(folder, "postgres", "postgres")
        for parent in (folder, folder.parent, folder.parent.parent):
            parent.chmod(parent.stat().st_mode | 0o055)
    secret, data = folder / "secret", folder / "data"
    secret.write_text(PASSWORD, encoding="utf-8")
    secret.chmod(0o644)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    make = [bin_folder / "initdb", "-D", data, "-U", "decal", "-A", "scram-sha-256", "--pwfile", secret, "-E", "UTF8"]
    subprocess.run([*make, "--no-sync", "--locale", "C"], check=True, capture_output=True, cwd=folder, **user)  # type: ignore[call-overload]
    options = {"port": port, "listen_addresses": "127.0.0.1", "unix_socket_directories": "", "fsync": "off"}
    words = [word for name, value in options.items() for word in ("-c", f"{name}={value}")]
    log = open(folder / "log", "wb")  # noqa: SIM115
    process = subprocess.Popen(
        [bin_folder / "postgres", "-D", data, *words], cwd=folder, stderr=log, stdout=log, **user
    )  # type: ignore[call-overload]
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
