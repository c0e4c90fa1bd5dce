"""Servers of objects: as much of S3 and of Google's storage as reading takes; no signature is checked.

A key that holds 'forbidden' is refused.
"""

import hashlib
import json
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

_DAY = "2026-03-01T00:00:00.000Z"


class ObjectHandler(BaseHTTPRequestHandler):
    """Answers of S3; `objects` are by 'bucket/key'."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # which holds back each answer for 40 ms
    objects: Mapping[str, bytes] = {}

    def do_HEAD(self) -> None:
        self.answer()

    def do_GET(self) -> None:
        self.answer()

    def answer(self) -> None:
        parts = urlsplit(self.path)
        place, asked = unquote(parts.path).strip("/"), parse_qs(parts.query)
        if "list-type" in asked:
            self.reply(200, self.listing(place, asked.get("prefix", [""])[0]))
        elif "forbidden" in place:
            self.reply(403, b"<Error><Code>AccessDenied</Code><Message>secret-of-tests</Message></Error>")
        elif place in self.objects:
            etag = f'"{hashlib.md5(self.objects[place]).hexdigest()}"'
            self.content(place, {"ETag": etag, "Last-Modified": "Sun, 01 Mar 2026 00:00:00 GMT"})
        else:
            self.reply(404, b"<Error><Code>NoSuchKey</Code></Error>")

    def names(self, bucket: str, prefix: str) -> list[str]:
        return sorted(place for place in self.objects if place.startswith(f"{bucket}/{prefix}"))

    def listing(self, bucket: str, prefix: str) -> bytes:
        places = self.names(bucket, prefix)
        entries = "".join(
            f"<Contents><Key>{escape(place.removeprefix(f'{bucket}/'))}</Key><Size>{len(self.objects[place])}</Size>"
            f"<LastModified>{_DAY}</LastModified></Contents>"
            for place in places
        )
        return (
            f"<ListBucketResult><Name>{bucket}</Name><Prefix>{escape(prefix)}</Prefix><KeyCount>{len(places)}"
            f"</KeyCount><MaxKeys>1000</MaxKeys><IsTruncated>false</IsTruncated>{entries}</ListBucketResult>"
        ).encode()

    def content(self, place: str, headers: Mapping[str, str]) -> None:
        """An object, or the range of it that is asked for."""
        content, span = self.objects[place], self.headers.get("Range")
        if span is None:
            self.reply(200, content, headers)
            return
        first, last = span.removeprefix("bytes=").split("-")
        start, end = int(first), min(int(last or len(content) - 1), len(content) - 1)
        self.reply(206, content[start : end + 1], {**headers, "Content-Range": f"bytes {start}-{end}/{len(content)}"})

    def reply(self, code: int, body: bytes, headers: Mapping[str, str] | None = None) -> None:
        self.send_response(code)
        for name, value in {"Content-Length": str(len(body)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None: ...


class GoogleHandler(ObjectHandler):
    """Answers of Google's storage."""

    def answer(self) -> None:
        parts = urlsplit(self.path)
        asked = parse_qs(parts.query)
        bucket, _, key = parts.path.removeprefix("/storage/v1/b/").partition("/o")
        key = unquote(key.removeprefix("/"))
        place = f"{bucket}/{key}"
        if "forbidden" in key:
            self.error(403, "secret-of-tests")
        elif not key and self.names(bucket, ""):
            items = [self.described(each) for each in self.names(bucket, asked.get("prefix", [""])[0])]
            self.reply(200, json.dumps({"kind": "storage#objects", "items": items}).encode())
        elif place not in self.objects:
            self.error(404, "No such object")
        elif asked.get("alt") != ["media"]:
            self.reply(200, json.dumps(self.described(place)).encode())
        else:
            self.content(place, {})

    def error(self, code: int, message: str) -> None:
        self.reply(code, json.dumps({"error": {"code": code, "message": message}}).encode())

    def described(self, place: str) -> dict[str, str]:
        bucket, _, key = place.partition("/")
        content = self.objects[place]
        names = {"kind": "storage#object", "id": f"{place}/1", "name": key, "bucket": bucket, "generation": "1"}
        times = {"timeCreated": _DAY, "updated": _DAY}
        return {**names, **times, "size": str(len(content)), "etag": hashlib.md5(content).hexdigest()}


def _server(handler: type[ObjectHandler], objects: Mapping[str, bytes]) -> ThreadingHTTPServer:
    return ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (handler,), {"objects": objects}))


@contextmanager
def object_store(objects: Mapping[str, bytes]) -> Iterator[str]:
    """Serve objects by 'bucket/key' as S3 does, and give the address."""
    with _server(ObjectHandler, objects) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@contextmanager
def google_store(folder: Path) -> Iterator[str]:
    """Serve what lies in a folder as 'bucket/key' as Google does, and give the address.

    In a process of its own: pyarrow waits for Google's store without letting other threads run.
    """
    words = [sys.executable, "-m", "tests.helpers.stores", str(folder)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2]) as process:
        try:
            assert process.stdout is not None
            yield process.stdout.readline().strip()
        finally:
            process.terminate()


if __name__ == "__main__":
    root = Path(sys.argv[1])
    files = {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}
    with _server(GoogleHandler, files) as google:
        print(f"http://127.0.0.1:{google.server_port}", flush=True)
        google.serve_forever()
