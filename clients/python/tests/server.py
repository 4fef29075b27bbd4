"""A gateway that fails on demand."""

from __future__ import annotations

import copy
import json
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

SUBMISSION = {
    "id": "driver-20260102030405-0000",
    "name": "Pi",
    "state": "QUEUED",
    "owner": "alice",
    "tenant": "default",
    "principal": "anonymous:anonymous",
    "namespace": "default",
    "labels": {},
    "sparkVersion": "4.3.0",
    "applicationId": "spark-1",
    "attempt": 1,
    "createdAt": "2026-01-02T03:04:05.123Z",
    "driver": {"pod": "pi-driver"},
    "executors": {"pending": 0, "running": 0, "succeeded": 0, "failed": 0, "deleted": 0},
}


class Handler(BaseHTTPRequestHandler):
    """A request, which the test's function answers."""

    protocol_version = "HTTP/1.1"
    body: bytes = b""

    def _answer(self) -> None:
        self.body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        server = self.server
        assert isinstance(server, Server)
        # A connection has one handler for all of its requests.
        server.requests.append(copy.copy(self))
        server.answer(self)

    do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = _answer

    def reply(self, status: int, document: Any = None, *, type: str = "application/json", **headers: str) -> None:
        """Sends a whole response."""
        body = document if isinstance(document, bytes) else json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Type", type)
        self.send_header("Content-Length", str(len(body)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)

    def problem(self, status: int, code: str, **headers: str) -> None:
        """Sends a problem."""
        self.reply(status, {"title": code, "status": status, "detail": "", "code": code, "requestId": "r-1"}, **headers)

    def stream(self, *chunks: bytes, cut: bool = False) -> None:
        """Sends a response in pieces; it is cut off or ended."""
        self.send_response(200)
        self.send_header("Content-Type", "text/plain")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for chunk in chunks:
            self.wfile.write(b"%x\r\n%s\r\n" % (len(chunk), chunk))
            self.wfile.flush()
        if not cut:
            self.wfile.write(b"0\r\n\r\n")
        self.close_connection = True

    def log_message(self, *_: object) -> None:
        """Logs nothing."""


class Server(ThreadingHTTPServer):
    """A server that answers as the test says."""

    daemon_threads = True

    def __init__(self, answer: Callable[[Handler], None]) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.answer = answer
        self.requests: list[Handler] = []
        threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True).start()

    @property
    def url(self) -> str:
        """The server's URL."""
        return f"http://127.0.0.1:{self.server_port}"
