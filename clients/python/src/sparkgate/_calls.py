"""The calls of the resource API, as generators of steps."""

from __future__ import annotations

import logging
import os
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, TypedDict, TypeVar
from urllib.parse import quote

import httpx
import pydantic

from sparkgate import _request
from sparkgate._lines import Lines
from sparkgate._request import Options, Scalar, Seconds
from sparkgate._retry import Broken, send
from sparkgate._sse import Reader
from sparkgate._steps import Call, Digest, Emit, NextChunk, Open, Reply, Request, Sleep, Stream
from sparkgate.errors import ApiError, GatewayUnreachable, NotFound, SparkgateError, WaitTimeout
from sparkgate.models import (
    Attempt,
    AttemptList,
    ChangedPlaces,
    Event,
    EventList,
    Executor,
    ExecutorList,
    Me,
    ObjectList,
    Plan,
    Queue,
    QueueList,
    Submission,
    SubmissionList,
    SubmissionState,
)

log = logging.getLogger("sparkgate")

T = TypeVar("T", bound=pydantic.BaseModel)

TERMINAL = frozenset({"FINISHED", "FAILED", "KILLED", "ERROR", "LOST"})
_NO_HEADERS = httpx.Headers()
_ORDER = ["QUEUED", "LAUNCHING", "PENDING", "RUNNING", "KILLING"]

#: The size of a page of a list.
_PAGE = 100
#: The longest poll. The gateway allows 60 seconds; proxies often end a silent connection after 60, too.
_POLL = 50.0
#: The pause before a stream is opened again.
_RECONNECT = 1.0
#: The longest silence of events: the gateway sends data every 15 seconds.
_EVENTS_SILENCE = 50.0
#: The slowest connection on which an upload isn't given up, in bytes a second.
_SLOWEST = 64 << 10
#: A log that is silent for so long is opened again, which finds out whether the gateway is still there.
_LOG_SILENCE = 300.0


def has_ended(submission: Submission) -> bool:
    """Returns whether the state is terminal."""
    return submission.state in TERMINAL


def has_reached(submission: Submission, goal: str | None) -> bool:
    """Returns whether the submission has ended, has reached a state, or has passed it."""
    state = str(submission.state)
    if state in TERMINAL:
        return True
    return goal in _ORDER and state in _ORDER and _ORDER.index(state) >= _ORDER.index(str(goal))


@dataclass(frozen=True)
class Filter:
    """The filters of a list."""

    state: str | Sequence[str] | None = None
    name: str | None = None
    owner: str | None = None
    namespace: str | None = None
    labels: Mapping[str, str] | None = None
    created_after: datetime | None = None
    created_before: datetime | None = None
    tenant: str | None = None
    queue: str | None = None
    # Those that only lists have.
    name_contains: str | None = None
    principal: str | None = None
    failure_code: str | Sequence[str] | None = None

    def params(self) -> list[tuple[str, str]]:
        """Returns the query."""
        params = _params(**self._texts(), nameContains=self.name_contains, principal=self.principal)
        params += [("state", state) for state in _words(self.state)]
        params += [("failureCode", code) for code in _words(self.failure_code)]
        return params + _labels(self.labels)

    def document(self) -> dict[str, Any]:
        """Returns the filter as a part of a request's body."""
        texts = {name: value for name, value in self._texts().items() if value is not None}
        return (
            texts | ({"state": _words(self.state)} if self.state else {}) | ({"labels": dict(self.labels)} if self.labels else {})
        )

    def _texts(self) -> dict[str, str | None]:
        return {
            "name": self.name,
            "owner": self.owner,
            "namespace": self.namespace,
            "tenant": self.tenant,
            "queue": self.queue,
            "createdAfter": _time("created_after", self.created_after),
            "createdBefore": _time("created_before", self.created_before),
        }


def _words(words: str | Sequence[str] | None) -> list[str]:
    """Returns one word, or several, as a list."""
    given = [words] if isinstance(words, str) else list(words or [])
    return [str(word) for word in given]


class Places(TypedDict, total=False):
    """Which submissions change: the filters of a list."""

    state: str | Sequence[str] | None
    name: str | None
    owner: str | None
    namespace: str | None
    labels: Mapping[str, str] | None
    created_after: datetime | None
    created_before: datetime | None
    tenant: str | None
    queue: str | None


def _labels(labels: Mapping[str, str] | None) -> list[tuple[str, str]]:
    return [("label", f"{key}={value}") for key, value in (labels or {}).items()]


def _params(**values: object) -> list[tuple[str, str]]:
    texts = ((name, str(value).lower() if isinstance(value, bool) else value) for name, value in values.items())
    return [(name, str(value)) for name, value in texts if value is not None]


def _time(what: str, at: datetime | None) -> str | None:
    if at is None:
        return None
    if at.tzinfo is None:
        raise ValueError(f"{what} has no time zone, such as datetime.timezone.utc")
    return at.isoformat()


def _read(model: type[T], action: str, reply: Reply) -> T:
    try:
        return model.model_validate_json(reply.body)
    except pydantic.ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise SparkgateError(f"{action}: the response isn't the gateway's: {where}: {first['msg']}") from None


class Calls:
    """The calls of one client."""

    def __init__(self, retry_seconds: float, reconnect_seconds: float) -> None:
        self._retry = retry_seconds
        self._reconnect = reconnect_seconds

    def _get(
        self,
        model: type[T],
        action: str,
        *path: str,
        params: Sequence[tuple[str, str]] = (),
        seconds: float | None = None,
    ) -> Call[T]:
        reply = yield from send(Request(action, "GET", path, tuple(params)), self._retry if seconds is None else seconds)
        return _read(model, action, reply)

    def submit(
        self,
        app: str | os.PathLike[str],
        args: tuple[Scalar | os.PathLike[str], ...],
        key: str | None,
        options: Options,
    ) -> Call[tuple[Submission, bool]]:
        """Submits an application. Returns also whether an earlier request with the same key has created the submission."""
        return (yield from self._create(f"submitting {app}", ("submissions",), key, _request.body(app, args, options)))

    def rerun(
        self,
        id: str,
        args: tuple[Scalar | os.PathLike[str], ...],
        patch: Mapping[str, Any] | None,
        key: str | None,
        options: Options,
    ) -> Call[tuple[Submission, bool]]:
        """Submits the request of a submission again, with changes."""
        body = _request.patched(patch or {}, _request.body(None, args, options))
        return (yield from self._create(f"submitting {id} again", ("submissions", _id(id), "rerun"), key, body))

    def _create(self, action: str, path: tuple[str, ...], key: str | None, body: dict[str, Any]) -> Call[tuple[Submission, bool]]:
        # With a key, a request whose response was lost can be repeated.
        headers = {"Idempotency-Key": key if key is not None else f"sparkgate-python/{uuid.uuid4()}"}
        request = Request(action, "POST", path, headers=headers, json=body)
        reply = yield from send(request, self._retry)
        submission = _read(Submission, request.action, reply)
        for warning in submission.warnings or []:
            log.warning("%s: %s", submission.id, warning)
        return submission, reply.headers.get("idempotency-replayed") == "true"

    def dry_run(self, app: str | os.PathLike[str], args: tuple[Scalar | os.PathLike[str], ...], options: Options) -> Call[Plan]:
        """Returns what would be created."""
        body = _request.body(app, args, options)
        request = Request(f"checking {app}", "POST", ("submissions",), (("dryRun", "true"),), json=body)
        reply = yield from send(request, self._retry)
        return _read(Plan, request.action, reply)

    def upload(self, path: str | os.PathLike[str], namespace: str | None) -> Call[str]:
        """Uploads a file, unless the tenant has it. Returns the reference."""
        file = Path(path)
        digest: tuple[str, int] = yield Digest(file)
        sha256, size = digest
        place, params = ("files", sha256), tuple(_params(namespace=namespace))
        reference = f"sparkgate-file:/{sha256}/{quote(file.name, safe='')}"
        try:
            yield from send(Request(f"looking for {file.name}", "HEAD", place, params), self._retry)
        except NotFound:
            headers = {"Content-Length": str(size), "Content-Type": "application/octet-stream"}
            action = f"uploading {file.name}"
            request = Request(action, "PUT", place, params, headers, file=file, longer_by=size / _SLOWEST)
            yield from send(request, self._retry)
        return reference

    def get(self, id: str, *, is_patient: bool = False) -> Call[Submission]:
        """Reads a submission with all details."""
        return (
            yield from self._get(
                Submission, f"asking for {id}", "submissions", _id(id), seconds=self._reconnect if is_patient else None
            )
        )

    def kill(self, id: str) -> Call[Submission]:
        """Kills a submission."""
        request = Request(f"killing {id}", "DELETE", ("submissions", _id(id)))
        reply = yield from send(request, self._retry)
        return _read(Submission, request.action, reply)

    def hold(self, id: str, reason: str | None) -> Call[Submission]:
        """Holds a queued submission."""
        request = Request(f"holding {id}", "PUT", ("submissions", _id(id), "hold"), json={"reason": reason})
        reply = yield from send(request, self._retry)
        return _read(Submission, request.action, reply)

    def release(self, id: str) -> Call[Submission]:
        """Releases a held submission."""
        request = Request(f"releasing {id}", "DELETE", ("submissions", _id(id), "hold"))
        reply = yield from send(request, self._retry)
        return _read(Submission, request.action, reply)

    def requeue(self, id: str, queue: str | None, priority: int | None) -> Call[Submission]:
        """Moves a submission that waits to another queue or priority."""
        body = {"queue": queue, "priority": priority}
        request = Request(f"moving {id}", "PUT", ("submissions", _id(id), "queue"), json=body)
        reply = yield from send(request, self._retry)
        return _read(Submission, request.action, reply)

    def change_places(self, filters: Filter, action: str, change: Mapping[str, Any]) -> Call[ChangedPlaces]:
        """Holds, releases or moves all submissions that match all filters and wait, of all pages."""
        body = {"filter": filters.document(), "action": action, **change}
        found = ChangedPlaces(changed=0, ids=[], refused=0, refusals=[], next=None)
        while True:
            request = Request("changing places in queues", "PUT", ("queue-places",), json=body)
            page = _read(ChangedPlaces, request.action, (yield from send(request, self._retry)))
            found.changed += page.changed
            found.refused += page.refused
            found.ids += page.ids
            found.refusals += page.refusals
            if not page.next:
                return found
            body["cursor"] = page.next

    def queues(self) -> Call[list[Queue]]:
        """Lists the queues."""
        return (yield from self._get(QueueList, "listing queues", "queues")).queues

    def attempts(self, id: str, *, is_patient: bool = False) -> Call[list[Attempt]]:
        """Lists the attempts."""
        path = ("submissions", _id(id), "attempts")
        page = yield from self._get(
            AttemptList, f"asking for the attempts of {id}", *path, seconds=self._reconnect if is_patient else None
        )
        return page.items

    def executors(self, id: str) -> Call[list[Executor]]:
        """Lists the executors, of all pages."""
        found: list[Executor] = []
        cursor = None
        while True:
            page = yield from self._get(
                ExecutorList,
                f"asking for the executors of {id}",
                "submissions",
                _id(id),
                "executors",
                params=_params(limit=500, cursor=cursor),
            )
            found += page.items
            cursor = page.next
            if not cursor:
                return found

    def manifest(self, id: str, attempt: int | None) -> Call[ObjectList]:
        """Reads the Kubernetes objects."""
        params = _params(attempt=attempt)
        return (
            yield from self._get(ObjectList, f"asking for the objects of {id}", "submissions", _id(id), "manifest", params=params)
        )

    def me(self) -> Call[Me]:
        """Reads who the caller is."""
        return (yield from self._get(Me, "asking who I am", "me"))

    def list(self, filters: Filter, limit: int | None) -> Stream[Submission]:
        """Lists submissions, the newest first."""
        left, cursor = limit, None
        while left is None or left > 0:
            size = _PAGE if left is None else min(left, _PAGE)
            params = [*filters.params(), *_params(limit=size, cursor=cursor)]
            page = yield from self._get(SubmissionList, "listing submissions", "submissions", params=params)
            for submission in page.items:
                yield Emit(submission)
            cursor, left = page.next, None if left is None else left - len(page.items)
            if not cursor:
                return

    def wait(self, id: str, timeout: Seconds | None, goal: str | None) -> Call[Submission]:
        """Waits until a submission has ended, or has reached a state or passed it."""
        limit = _request.seconds(timeout)
        deadline = None if limit is None else time.monotonic() + limit
        if goal is not None:
            goal = SubmissionState(goal.upper()).value
        submission = yield from self._get(
            Submission,
            f"asking for {id}",
            "submissions",
            _id(id),
            seconds=self._retry if limit is None else min(self._retry, limit),
        )
        while not has_reached(submission, goal):
            before = time.monotonic()
            left = _POLL if deadline is None else deadline - before
            if left <= 0:
                raise WaitTimeout(f"{id} is still {submission.state.value}: the timeout has expired")
            poll = max(1, min(_POLL, round(left)))
            params = _params(timeoutSeconds=int(poll), state=goal)
            request = Request(f"waiting for {id}", "GET", ("submissions", _id(id), "wait"), tuple(params), longer_by=poll)
            try:
                patience = self._reconnect if deadline is None else min(self._reconnect, left)
                reply = yield from send(request, patience)
            except (ApiError, GatewayUnreachable) as error:
                if error.retryable and deadline is not None and time.monotonic() + 1 >= deadline:
                    raise WaitTimeout(f"{id} was {submission.state.value} when it was last seen: {error}") from error
                raise
            new = _read(Submission, request.action, reply)
            # A proxy that answers at once must not turn this into a busy loop.
            if new == submission and time.monotonic() - before < min(0.1, left):
                yield Sleep(0.5)
            submission = new
        # Only a read of the submission itself has all details of its end.
        return (yield from self.get(id, is_patient=True)) if has_ended(submission) else submission

    def logs(
        self,
        id: str,
        *,
        follow: bool,
        tail: int | None,
        since: datetime | None,
        timestamps: bool,
        own_output: bool,
        executor: int | None,
        attempt: int | None,
    ) -> Stream[str]:
        """Reads the lines of a log."""
        lines = Lines(with_times=timestamps or not follow)
        start = _time("since", since)
        has_begun = False

        def opened(since: str | None, tail: int | None, attempt: int | None) -> Open:
            # Following needs the times to continue after a broken connection.
            params = _params(
                follow=follow or None,
                tail=tail,
                since=since,
                executor=executor,
                attempt=attempt,
                timestamps=(timestamps or follow) or None,
                ownOutput=own_output or None,
            )
            headers = {"Accept": "text/plain, application/problem+json"}
            action = f"reading the log of {id}"
            return Open(Request(action, "GET", ("submissions", _id(id), "logs"), tuple(params), headers), _LOG_SILENCE)

        while True:
            again, latest = lines.resume(), lines.latest
            if again is None or latest is None:
                step = opened(start, tail, attempt)
            else:
                step = opened(again, None, attempt if attempt is not None else (yield from self._attempt_at(id, latest)))
            yield from send(step, self._reconnect if has_begun else self._retry)
            has_begun = True
            try:
                while True:
                    chunk: bytes | None = yield NextChunk()
                    for line in lines.finish() if chunk is None else lines.take(chunk):
                        yield Emit(line.decode(errors="replace"))
                    if lines.has_gap:
                        log.warning("%s: lines of the log were deleted before they could be read", id)
                        lines.has_gap = False
                    if chunk is None:
                        return
            except Broken as broken:
                if not follow:
                    raise GatewayUnreachable(f"{step.request.action}: {broken.cause}") from broken.cause
            yield Sleep(_RECONNECT)

    def _attempt_at(self, id: str, at: datetime) -> Call[int | None]:
        """Returns the attempt that wrote a line at this time: a later attempt may have started since."""
        begun = []
        for attempt in (yield from self.attempts(id, is_patient=True)):
            if int(attempt.queued_at.timestamp()) <= at.timestamp():
                begun.append(attempt.attempt)
        return max(begun, default=None)

    def events(
        self,
        after: int | None,
        *,
        submission: str | None,
        owner: str | None,
        namespace: str | None,
        labels: Mapping[str, str] | None,
        is_last: Callable[[Event], Call[bool]] | None = None,
    ) -> Stream[Event]:
        """Follows events without an end, or until `is_last`."""
        action = "following events"
        params = [*_params(submission=submission, owner=owner, namespace=namespace), *_labels(labels)]
        # The position of now, so that a connection that breaks before its first message loses nothing.
        last = str(after) if after is not None else None
        if last is None:
            page = yield from self._get(EventList, action, "events", params=[*params, ("limit", "1")])
            for event in page.items:
                yield Emit(event)
            last = page.next
        patience = self._retry
        while True:
            headers = {"Accept": "text/event-stream, application/problem+json"}
            if last is not None:
                headers["Last-Event-ID"] = last
            request = Request(action, "GET", ("events",), tuple(params), headers)
            yield from send(Open(request, _EVENTS_SILENCE), patience)
            patience, reader = self._reconnect, Reader(last)
            try:
                while (chunk := (yield NextChunk())) is not None:
                    for message in reader.take(chunk):
                        if message.event == "state":
                            event = _read(Event, action, Reply(200, _NO_HEADERS, message.data.encode()))
                            last = message.last_id
                            yield Emit(event)
                            if is_last is not None and (yield from is_last(event)):
                                return
                    last = reader.last_id
            except Broken:
                pass
            # A replica that shuts down ends its streams; another one continues.
            yield Sleep(_RECONNECT)

    def events_of(self, id: str, after: int | None) -> Stream[Event]:
        """Follows all events of one submission until it has ended."""

        def is_last(event: Event) -> Call[bool]:
            # A failed attempt may be followed by a retry.
            if event.state not in TERMINAL:
                return False
            return has_ended((yield from self.get(id, is_patient=True)))

        position = after
        if position is None:
            position = 0
            cursor: str | None = None
            while True:
                page = yield from self._get(
                    EventList,
                    f"asking for the events of {id}",
                    "submissions",
                    _id(id),
                    "events",
                    params=_params(after=cursor),
                )
                for event in page.items:
                    # The newest events may have no number yet: the stream will send them.
                    if event.sequence is not None:
                        position = event.sequence
                        yield Emit(event)
                        last = event
                cursor = page.next
                if cursor:
                    continue
                if position:
                    break
                # The submission was only just accepted: its first event gets its number soon.
                yield Sleep(0.2)
            if (yield from is_last(last)):
                return
        yield from self.events(position, submission=id, owner=None, namespace=None, labels=None, is_last=is_last)

    def request(
        self, method: str, path: str, params: Mapping[str, Any] | None, json: Any, headers: Mapping[str, str] | None
    ) -> Call[Reply]:
        """Sends any request of the resource API."""
        pieces = tuple(piece for piece in path.removeprefix("/v1").split("/") if piece)
        request = Request(
            f"{method} {path}",
            method,
            pieces,
            tuple(_params(**(params or {}))),
            dict(headers or {}),
            json,
            is_repeatable=method in ("GET", "HEAD", "PUT", "DELETE"),
        )
        return (yield from send(request, self._retry))


def _id(id: str) -> str:
    # Below `/v1/submissions/`, other words are paths of Spark's protocol.
    if not id.startswith("driver-"):
        raise ValueError(f"{id!r} is not the id of a submission, which begins with driver-")
    return id
