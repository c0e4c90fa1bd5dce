"""A server of objects that speaks as much S3 as reading takes: heads, ranges and lists; no signature is checked."""

import hashlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape


@contextmanager
def object_store(objects: dict[str, bytes]) -> Iterator[str]:
    """Serve objects by 'bucket/key', and give the address; a key that holds 'forbidden' is refused."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_HEAD(self) -> None:
            self.answer(False)

        def do_GET(self) -> None:
            self.answer(True)

        def answer(self, with_body: bool) -> None:
            parts = urlsplit(self.path)
            place, asked = unquote(parts.path).strip("/"), parse_qs(parts.query)
            if "list-type" in asked:
                self.reply(200, _listing(objects, place, asked.get("prefix", [""])[0]), with_body)
            elif "forbidden" in place:
                self.reply(
                    403, b"<Error><Code>AccessDenied</Code><Message>secret-of-tests</Message></Error>", with_body
                )
            elif place in objects:
                content = objects[place]
                span = self.headers.get("Range")
                if span is None:
                    self.reply(200, content, with_body, place)
                    return
                first, last = (int(each) for each in span.removeprefix("bytes=").split("-"))
                last = min(last, len(content) - 1)
                self.reply(206, content[first : last + 1], with_body, place, f"bytes {first}-{last}/{len(content)}")
            else:
                self.reply(404, b"<Error><Code>NoSuchKey</Code></Error>", with_body)

        def reply(self, code: int, body: bytes, with_body: bool, place: str = "", span: str = "") -> None:
            self.send_response(code)
            self.send_header("Content-Length", str(len(body)))
            if place:
                self.send_header("ETag", f'"{hashlib.md5(objects[place]).hexdigest()}"')
                self.send_header("Last-Modified", "Sun, 01 Mar 2026 00:00:00 GMT")
            if span:
                self.send_header("Content-Range", span)
            self.end_headers()
            if with_body:
                self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


def _listing(objects: dict[str, bytes], bucket: str, prefix: str) -> bytes:
    keys = sorted(key.removeprefix(f"{bucket}/") for key in objects if key.startswith(f"{bucket}/{prefix}"))
    entries = "".join(
        f"<Contents><Key>{escape(key)}</Key><Size>{len(objects[f'{bucket}/{key}'])}</Size>"
        "<LastModified>2026-03-01T00:00:00.000Z</LastModified></Contents>"
        for key in keys
    )
    return (
        f"<ListBucketResult><Name>{bucket}</Name><Prefix>{escape(prefix)}</Prefix><KeyCount>{len(keys)}</KeyCount>"
        f"<MaxKeys>1000</MaxKeys><IsTruncated>false</IsTruncated>{entries}</ListBucketResult>"
    ).encode()
