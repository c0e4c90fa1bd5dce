"""A server that speaks as much of Google's storage as reading takes: what an object is, lists and content."""

import hashlib
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

START = "/storage/v1/b/"


@contextmanager
def google_store(folder: Path) -> Iterator[str]:
    """Serve what lies in a folder as 'bucket/key', and give the address; a key that holds 'forbidden' is refused.

    In a process of its own: pyarrow waits for Google's store without letting other threads run.
    """
    words = [sys.executable, "-m", "tests.helpers.google_store", str(folder)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2]) as process:
        try:
            assert process.stdout is not None
            yield process.stdout.readline().strip()
        finally:
            process.terminate()


def _serve(objects: dict[str, bytes]) -> None:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            asked = parse_qs(parts.query)
            bucket, _, key = parts.path.removeprefix(START).partition("/o")
            key = unquote(key.removeprefix("/"))
            place = f"{bucket}/{key}"
            if "forbidden" in key:
                self.reply(403, json.dumps({"error": {"code": 403, "message": "secret-of-tests"}}).encode())
            elif not key:
                self.reply(*_listing(objects, bucket, asked.get("prefix", [""])[0]))
            elif place not in objects:
                self.reply(404, json.dumps({"error": {"code": 404, "message": "No such object"}}).encode())
            elif asked.get("alt") != ["media"]:
                self.reply(200, json.dumps(_object(objects, place)).encode())
            else:
                self.content(objects[place])

        def content(self, content: bytes) -> None:
            span = self.headers.get("Range")
            if span is None:
                self.reply(200, content)
                return
            first, last = span.removeprefix("bytes=").split("-")
            start, end = int(first), min(int(last or len(content) - 1), len(content) - 1)
            self.reply(206, content[start : end + 1], f"bytes {start}-{end}/{len(content)}")

        def reply(self, code: int, body: bytes, span: str = "") -> None:
            self.send_response(code)
            self.send_header("Content-Length", str(len(body)))
            if span:
                self.send_header("Content-Range", span)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        print(f"http://127.0.0.1:{server.server_port}", flush=True)
        server.serve_forever()


def _object(objects: dict[str, bytes], place: str) -> dict[str, str]:
    bucket, _, key = place.partition("/")
    day = "2026-03-01T00:00:00.000Z"
    return {
        "kind": "storage#object",
        "id": f"{place}/1",
        "name": key,
        "bucket": bucket,
        "generation": "1",
        "size": str(len(objects[place])),
        "timeCreated": day,
        "updated": day,
        "etag": hashlib.md5(objects[place]).hexdigest(),
    }


def _listing(objects: dict[str, bytes], bucket: str, prefix: str) -> tuple[int, bytes]:
    if not any(place.startswith(f"{bucket}/") for place in objects):
        return 404, json.dumps({"error": {"code": 404, "message": "The bucket does not exist"}}).encode()
    items = [_object(objects, place) for place in sorted(objects) if place.startswith(f"{bucket}/{prefix}")]
    return 200, json.dumps({"kind": "storage#objects", "items": items}).encode()


if __name__ == "__main__":
    root = Path(sys.argv[1])
    _serve({str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()})
