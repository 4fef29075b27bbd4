"""What the client does about a gateway, or a proxy, that fails."""

from __future__ import annotations

import asyncio
import hashlib
import random
import threading
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path

import pytest
from server import SUBMISSION, Handler, Server

from sparkgate import (
    ApiError,
    AsyncClient,
    Client,
    GatewayUnreachable,
    Overloaded,
    SparkgateError,
    SubmissionFailed,
    Unauthenticated,
    Unavailable,
)
from sparkgate._lines import Lines
from sparkgate._sse import Reader

Serve = Callable[[Callable[[Handler], None]], Server]


@pytest.fixture
def serve() -> Iterator[Serve]:
    servers: list[Server] = []

    def start(answer: Callable[[Handler], None]) -> Server:
        servers.append(Server(answer))
        return servers[-1]

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


def client(server: Server, **options: float) -> Client:
    return Client(server.url, environ={}, **options)  # type: ignore[arg-type]


def keys(server: Server) -> list[str]:
    return [request.headers["Idempotency-Key"] for request in server.requests]


def test_a_busy_gateway_is_asked_again_with_the_same_key(serve: Serve) -> None:
    def answer(request: Handler) -> None:
        if len(server.requests) <= 2:
            return request.problem(503, "busy", Retry_After="0")
        return request.reply(201, SUBMISSION)

    server = serve(answer)
    assert client(server).submit("local:///app.py").id == SUBMISSION["id"]
    assert len(server.requests) == 3
    assert len(set(keys(server))) == 1
    assert keys(server)[0].startswith("sparkgate-python/")

    async def main() -> None:
        async with AsyncClient(server.url, environ={}) as client:
            await client.submit("local:///app.py", idempotency_key="mine")

    server.requests.clear()
    asyncio.run(main())
    assert keys(server) == ["mine"] * 3


def test_a_request_whose_response_is_lost_is_sent_again(serve: Serve) -> None:
    def answer(request: Handler) -> None:
        if len(server.requests) == 1:
            request.close_connection = True
            request.connection.close()
        else:
            request.reply(201, SUBMISSION)

    server = serve(answer)
    client(server).submit("local:///app.py")
    assert len(set(keys(server))) == 1
    assert len(server.requests) == 2


def test_a_post_without_a_key_is_not_sent_again(serve: Serve) -> None:
    server = serve(lambda request: request.problem(503, "timed-out", Retry_After="0"))
    with pytest.raises(Unavailable):
        client(server).request("POST", "/v1/tokens", json={"name": "x"})
    assert len(server.requests) == 1


@pytest.mark.parametrize("is_asynchronous", [False, True])
def test_an_upload_that_breaks_off_begins_anew(serve: Serve, tmp_path: Path, is_asynchronous: bool) -> None:
    file = tmp_path / "deps.zip"
    file.write_bytes(bytes(range(256)) * 3000)
    known: list[str] = []

    def answer(request: Handler) -> None:
        if request.command == "HEAD":
            return request.reply(200 if request.path in known else 404, b"")
        if len(server.requests) == 2:
            return request.problem(503, "files-unavailable", Retry_After="0")
        known.append(request.path)
        return request.reply(201, {})

    server = serve(answer)

    def upload() -> str:
        async def main() -> str:
            async with AsyncClient(server.url, environ={}) as client:
                return await client.upload(file, namespace="jobs")

        return asyncio.run(main()) if is_asynchronous else client(server).upload(file, namespace="jobs")

    sha256 = hashlib.sha256(file.read_bytes()).hexdigest()
    assert upload() == upload() == f"sparkgate-file:/{sha256}/deps.zip"
    assert known == [f"/v1/files/{sha256}?namespace=jobs"]
    assert [request.command for request in server.requests] == ["HEAD", "PUT", "PUT", "HEAD"]
    assert server.requests[2].body == file.read_bytes()


def test_a_gateway_that_stays_busy_is_an_error_with_its_problem(serve: Serve) -> None:
    server = serve(lambda request: request.problem(503, "unavailable"))
    with pytest.raises(Unavailable) as unavailable:
        client(server, retry_seconds=1).get("driver-1")
    assert (unavailable.value.code, unavailable.value.request_id, unavailable.value.retryable) == ("unavailable", "r-1", True)
    assert len(server.requests) > 1


def test_a_limit_that_the_request_alone_exceeds_is_not_tried_again(serve: Serve) -> None:
    server = serve(lambda request: request.problem(429, "rate-limited"))
    with pytest.raises(Overloaded) as overloaded:
        client(server).get("driver-1")
    assert not overloaded.value.retryable
    assert len(server.requests) == 1


def test_a_gateway_that_hangs_is_given_up(serve: Serve) -> None:
    stop = threading.Event()
    server = serve(lambda _: stop.wait(60) and None)
    with pytest.raises(GatewayUnreachable, match="asking for driver-1"):
        client(server, timeout=0.2, retry_seconds=1).get("driver-1")
    assert len(server.requests) > 1
    stop.set()


def test_an_address_without_a_gateway_is_an_error() -> None:
    with pytest.raises(GatewayUnreachable, match="refused"):
        Client("http://127.0.0.1:9", environ={}, retry_seconds=0).get("driver-1")


@pytest.mark.parametrize(
    ("status", "body", "type", "error", "says"),
    [
        (502, b"<html>Bad Gateway</html>", "text/html", Unavailable, "^HTTP 502 Bad Gateway$"),
        (500, b"it broke\nbadly", "text/plain", ApiError, "^HTTP 500 Internal Server Error: it broke$"),
        (400, b'{"message": "Spark says no"}', "application/json", ApiError, "Spark says no"),
        (401, b"", "text/plain", Unauthenticated, "no token was sent: run `sparkgate login`"),
        (299, b"<html>", "text/html", SparkgateError, "the response isn't the gateway's"),
        (200, b'{"id": "driver-1"}', "application/json", SparkgateError, "the response isn't the gateway's: applicationId"),
    ],
)
def test_foreign_responses_are_errors(
    serve: Serve, status: int, body: bytes, type: str, error: type[Exception], says: str
) -> None:
    server = serve(lambda request: request.reply(status, body, type=type))
    with pytest.raises(error, match=says):
        client(server, retry_seconds=0).get("driver-1")


def test_a_token_does_not_follow_a_redirect(serve: Serve) -> None:
    other = serve(lambda request: request.reply(200, SUBMISSION))
    server = serve(lambda request: request.reply(307, {}, Location=f"{other.url}/v1"))
    with pytest.raises(ApiError, match=f"it points to {other.url}"):
        Client(server.url, "s3cret", environ={}).get("driver-1")
    assert server.requests[0].headers["Authorization"] == "Bearer s3cret"
    assert not other.requests


def test_what_a_newer_gateway_adds_is_kept_as_text(serve: Serve) -> None:
    failure = {"code": "SUN_EXPLODED", "class": "astronomy", "message": "it is dark"}
    document = {**SUBMISSION, "state": "FAILED", "failure": failure, "colour": "red"}
    server = serve(lambda request: request.reply(200, document))
    with pytest.raises(SubmissionFailed, match="SUN_EXPLODED: it is dark") as failed:
        client(server).get("driver-1").wait(check=True)
    assert failed.value.submission.failure
    assert failed.value.submission.failure.class_ == "astronomy"
    server.answer = lambda request: request.reply(200, {**SUBMISSION, "state": "PONDERING"})
    assert not client(server).get("driver-1").has_ended


def test_a_proxy_that_answers_waits_at_once_is_not_hammered(serve: Serve) -> None:
    server = serve(lambda request: request.reply(200, SUBMISSION))
    with pytest.raises(TimeoutError):
        client(server).get("driver-1").wait(1.2)
    assert len(server.requests) <= 6


LOG = (
    b"2026-01-02T03:04:05.1Z one\n2026-01-02T03:04:06.2Z two\n2026-01-02T03:04:06.2Z \n"
    b"2026-01-02T03:04:07.5Z 2026 four\n2026-01-02T03:04:07.400000001Z five\n2026-01-02T03:04:07.5Z six"
)
TEXT = [b"one", b"two", b"", b"2026 four", b"five", b"six"]


def since(log: bytes, start: str | None) -> bytes:
    def at(text: str) -> tuple[datetime, int]:
        whole, _, fraction = text.rstrip("Z").partition(".")
        return datetime.fromisoformat(whole), int(fraction.ljust(9, "0"))

    lines = log.splitlines(keepends=True)
    return b"".join(line for line in lines if start is None or at(line.split(b" ")[0].decode()) >= at(start))


@pytest.mark.parametrize("with_times", [False, True])
def test_every_line_comes_once_wherever_the_connection_breaks(with_times: bool) -> None:
    expected = LOG.split(b"\n") if with_times else TEXT
    for first in range(len(LOG) + 1):
        for second in range(0, len(LOG) + 1, 7):
            lines = Lines(with_times=with_times)
            assert lines.resume() is None
            read = lines.take(LOG[:first])
            for end in (second, len(LOG)):
                log = since(LOG, lines.resume())[:end]
                for start in range(0, len(log), 3):
                    read += lines.take(log[start : start + 3])
            assert read + lines.finish() == expected, (first, second)
            assert not lines.has_gap


def test_a_log_that_has_lost_lines_has_a_gap_and_one_without_times_is_counted() -> None:
    lines = Lines(with_times=False)
    lines.take(b"2026-01-02T03:04:05Z one\n")
    lines.resume()
    assert lines.take(b"2026-01-02T03:04:09Z nine\n") == [b"nine"]
    assert lines.has_gap
    plain = Lines(with_times=False)
    assert plain.take(b"a line\nhalf a ") == [b"a line"]
    plain.resume()
    assert plain.take(b"a line\nhalf a line\n12") == [b"half a line"]
    assert plain.finish() == [b"12"]


def test_a_log_that_breaks_again_and_again_is_read_to_its_end(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sparkgate._calls._RECONNECT", 0.01)
    rolls = random.Random(7)

    def answer(request: Handler) -> None:
        if "/attempts" in request.path:
            return request.reply(
                200, {"items": [{"attempt": 1, "state": "RUNNING", "queuedAt": "2026-01-02T03:04:05.123Z", "pod": "pi"}]}
            )
        query = dict(pair.split("=") for pair in request.path.partition("?")[2].split("&"))
        start = query.get("since")
        log = since(LOG, start.replace("%3A", ":") if start else None)
        if len(server.requests) < 20:
            return request.stream(log[: rolls.randrange(1, len(log))], cut=True)
        return request.stream(log)

    server = serve(answer)
    read = list(client(server).logs("driver-1", follow=True))
    assert [line.encode() for line in read] == TEXT
    server.requests.clear()
    with pytest.raises(GatewayUnreachable, match="reading the log of driver-1"):
        list(client(server).logs("driver-1"))


def test_server_sent_events_in_pieces() -> None:
    text = b": hello\r\nid: 7\r\n\r\nid: 8\nevent: state\ndata: a\ndata: b\n\nid: 9\ndata: unfinished"
    for size in range(1, len(text)):
        reader = Reader("5")
        messages = [message for at in range(0, len(text), size) for message in reader.take(text[at : at + size])]
        assert [(message.event, message.data, message.last_id) for message in messages] == [("state", "a\nb", "8")]
        assert reader.last_id == "8"
