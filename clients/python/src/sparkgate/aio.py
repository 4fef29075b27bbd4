"""The asynchronous client, on asyncio and trio."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

import anyio
import anyio.to_thread
import httpx
from pydantic import PrivateAttr
from typing_extensions import Self, Unpack

from sparkgate import models
from sparkgate._calls import Filter, Places
from sparkgate._handle import Handle
from sparkgate._request import Options, Scalar, Seconds
from sparkgate._retry import Broken, Refused
from sparkgate._steps import PIECE, Call, Digest, Emit, NextChunk, Open, Reply, Request, Sleep, Step, Stream
from sparkgate._transport import Settings

T = TypeVar("T")


class AsyncSubmission(Handle):
    """A submission. Its fields are those of the gateway's document, as it was read last."""

    _client: AsyncClient = PrivateAttr()

    async def refresh(self) -> Self:
        """Reads the submission again."""
        return self._take(await self._client._run(self._client._calls.get(self.id)))

    async def wait(self, timeout: Seconds | None = None, *, state: str | None = None, check: bool = False) -> Self:
        """Waits until the submission has ended, or has reached `state` or passed it.

        Goes on when the gateway restarts. Raises `WaitTimeout` after `timeout`, and with `check` `SubmissionFailed`
        if the submission ended in another state than FINISHED.
        """
        client = self._client
        return self._take(await client._run(client._calls.wait(self.id, timeout, state)))._checked(check)

    async def kill(self) -> Self:
        """Kills the submission in any state; repeating it changes nothing. `wait` waits until it has ended."""
        return self._take(await self._client._run(self._client._calls.kill(self.id)))

    async def hold(self, reason: str | None = None) -> Self:
        """Holds the submission while it is queued: it isn't launched before `release`, and its time limits don't run."""
        return self._take(await self._client._run(self._client._calls.hold(self.id, reason)))

    async def release(self) -> Self:
        """Releases the submission. It has its old place in its queue again."""
        return self._take(await self._client._run(self._client._calls.release(self.id)))

    async def requeue(self, queue: str | None = None, priority: int | None = None) -> Self:
        """Moves the submission, which waits, to another queue, or changes its priority."""
        return self._take(await self._client._run(self._client._calls.requeue(self.id, queue, priority)))

    def logs(
        self,
        *,
        follow: bool = False,
        tail: int | None = None,
        since: datetime | None = None,
        timestamps: bool = False,
        own_output: bool = False,
        executor: int | None = None,
        attempt: int | None = None,
    ) -> AsyncGenerator[str, None]:
        """Reads the log of the driver or of an executor, line by line.

        With `follow`, lines come until the driver has ended, each once, also across broken connections.
        """
        return self._client.logs(
            self.id,
            follow=follow,
            tail=tail,
            since=since,
            timestamps=timestamps,
            own_output=own_output,
            executor=executor,
            attempt=attempt,
        )

    def events(self, after: int | None = None) -> AsyncGenerator[models.Event, None]:
        """Follows the state changes of the submission from the first one, or after a `sequence`, until it has ended."""
        return self._client._stream(self._client._calls.events_of(self.id, after))

    async def rerun(
        self,
        *args: Scalar | os.PathLike[str],
        patch: Mapping[str, Any] | None = None,
        idempotency_key: str | None = None,
        **options: Unpack[Options],
    ) -> AsyncSubmission:
        """Submits the request of the submission again, with changes, as `AsyncClient.rerun`. Returns the new submission."""
        return await self._client.rerun(self.id, *args, patch=patch, idempotency_key=idempotency_key, **options)

    async def list_attempts(self) -> list[models.Attempt]:
        """Lists the attempts, the first one first."""
        return await self._client._run(self._client._calls.attempts(self.id))

    async def list_executors(self) -> list[models.Executor]:
        """Lists the executors of all attempts."""
        return await self._client._run(self._client._calls.executors(self.id))

    async def manifest(self, attempt: int | None = None) -> models.ObjectList:
        """Reads the Kubernetes objects, which are kept as long as the driver's pod."""
        return await self._client._run(self._client._calls.manifest(self.id, attempt))


class AsyncClient:
    """An asynchronous client of a gateway. See `Client` for the arguments, which are the same."""

    def __init__(
        self,
        url: str | None = None,
        token: str | None = None,
        context: str | None = None,
        *,
        token_file: str | os.PathLike[str] | None = None,
        ca_file: str | os.PathLike[str] | None = None,
        certificate: str | os.PathLike[str] | None = None,
        key: str | os.PathLike[str] | None = None,
        timeout: float = 30,
        retry_seconds: float = 20,
        reconnect_seconds: float = 300,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        self._settings = Settings(
            url,
            token,
            context,
            token_file=token_file,
            ca_file=ca_file,
            certificate=certificate,
            key=key,
            timeout=timeout,
            retry_seconds=retry_seconds,
            reconnect_seconds=reconnect_seconds,
            environ=environ,
        )
        self._calls = self._settings.calls
        self._http = httpx.AsyncClient(**self._settings.http)

    @property
    def url(self) -> str:
        """The gateway's URL."""
        return self._settings.server.url

    async def submit(
        self,
        app: str | os.PathLike[str],
        *args: Scalar | os.PathLike[str],
        idempotency_key: str | None = None,
        **options: Unpack[Options],
    ) -> AsyncSubmission:
        """Submits an application: the URI of a jar, Python or R file that the driver can read, and its arguments.

        Returns when the submission is committed. With an `idempotency_key`, a repeated call returns the first one's
        submission; without one, only the client's own retries do. See `Options` for the options.
        """
        document, is_replayed = await self._run(self._calls.submit(app, args, idempotency_key, options))
        submission = self._handle(document)
        submission._is_replayed = is_replayed
        return submission

    async def dry_run(
        self, app: str | os.PathLike[str], *args: Scalar | os.PathLike[str], **options: Unpack[Options]
    ) -> models.Plan:
        """Returns what `submit` would create. Nothing is stored."""
        return await self._run(self._calls.dry_run(app, args, options))

    async def upload(self, path: str | os.PathLike[str], *, namespace: str | None = None) -> str:
        """Uploads a file for submissions, unless the gateway has it. Returns its URI, `sparkgate-file:/<sha256>/<name>`.

        The URI can stand wherever Spark takes one: as the application, and in `spark.jars`, `spark.submit.pyFiles`, `spark.files`
        and `spark.archives`. A file that no submission uses is deleted after a while. Callers that may submit in several tenants
        name the `namespace` of the submission.
        """
        return await self._run(self._calls.upload(path, namespace))

    async def rerun(
        self,
        id: str,
        *args: Scalar | os.PathLike[str],
        patch: Mapping[str, Any] | None = None,
        idempotency_key: str | None = None,
        **options: Unpack[Options],
    ) -> AsyncSubmission:
        """Submits the request of an earlier submission again. Returns the new submission.

        Arguments and options replace those of the earlier request; without any, it is repeated as it was. `patch` is a JSON merge
        patch of the request for everything else, with `None` to remove a field; options precede it. Values that look like secrets
        aren't stored: give them again, or remove them.
        """
        document, is_replayed = await self._run(self._calls.rerun(id, args, patch, idempotency_key, options))
        submission = self._handle(document)
        submission._is_replayed = is_replayed
        return submission

    async def get(self, id: str) -> AsyncSubmission:
        """Reads a submission."""
        return self._handle(await self._run(self._calls.get(id)))

    async def list(
        self,
        *,
        state: str | Sequence[str] | None = None,
        name: str | None = None,
        owner: str | None = None,
        namespace: str | None = None,
        labels: Mapping[str, str] | None = None,
        created_after: datetime | None = None,
        created_before: datetime | None = None,
        tenant: str | None = None,
        queue: str | None = None,
        name_contains: str | None = None,
        principal: str | None = None,
        failure_code: str | Sequence[str] | None = None,
        limit: int | None = None,
    ) -> AsyncGenerator[AsyncSubmission, None]:
        """Lists the submissions that match all filters, the newest first; `name` is a prefix. Pages are read as needed.

        `principal` is the caller that submitted, such as `corp:alice`; any of the failure codes has to match.
        """
        filters = Filter(
            state,
            name,
            owner,
            namespace,
            labels,
            created_after,
            created_before,
            tenant,
            queue,
            name_contains,
            principal,
            failure_code,
        )
        async for submission in self._stream(self._calls.list(filters, limit)):
            yield self._handle(submission)

    async def hold_all(self, *, reason: str | None = None, **filters: Unpack[Places]) -> models.ChangedPlaces:
        """Holds all queued submissions that match all filters, of those that the caller may kill. Returns which there were.

        There must be a filter at least. If the connection breaks for good, repeating the call holds the rest.
        """
        return await self._run(self._calls.change_places(Filter(**filters), "hold", {"reason": reason}))

    async def release_all(self, **filters: Unpack[Places]) -> models.ChangedPlaces:
        """Releases all held submissions that match all filters, in the same way."""
        return await self._run(self._calls.change_places(Filter(**filters), "release", {}))

    async def requeue_all(
        self, *, to: str | None = None, priority: int | None = None, **filters: Unpack[Places]
    ) -> models.ChangedPlaces:
        """Moves all submissions that wait and match all filters to the queue `to`, or changes their priority, in the same way.

        `refusals` of the result says which can't move, and why.
        """
        return await self._run(self._calls.change_places(Filter(**filters), "move", {"queue": to, "priority": priority}))

    async def list_queues(self) -> Sequence[models.Queue]:
        """Lists the queues that the caller's tenants may use: what runs in them, and what waits."""
        return await self._run(self._calls.queues())

    def logs(
        self,
        id: str,
        *,
        follow: bool = False,
        tail: int | None = None,
        since: datetime | None = None,
        timestamps: bool = False,
        own_output: bool = False,
        executor: int | None = None,
        attempt: int | None = None,
    ) -> AsyncGenerator[str, None]:
        """Reads a log, as `AsyncSubmission.logs`."""
        return self._stream(
            self._calls.logs(
                id,
                follow=follow,
                tail=tail,
                since=since,
                timestamps=timestamps,
                own_output=own_output,
                executor=executor,
                attempt=attempt,
            )
        )

    def events(
        self,
        after: int | None = None,
        *,
        owner: str | None = None,
        namespace: str | None = None,
        labels: Mapping[str, str] | None = None,
    ) -> AsyncGenerator[models.Event, None]:
        """Follows the state changes of all submissions without an end.

        Starts after the event with this `sequence`: 0 stands for all that are kept, `None` for those from the first
        iteration on. Goes on after a broken connection; no event is missed and none comes twice.
        """
        return self._stream(self._calls.events(after, submission=None, owner=owner, namespace=namespace, labels=labels))

    async def me(self) -> models.Me:
        """Reads who the caller is, and what it may do."""
        return await self._run(self._calls.me())

    async def request(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, Any] | None = None,
        json: Any = None,
        headers: Mapping[str, str] | None = None,
    ) -> bytes:
        """Sends a request of the resource API that has no method of its own, such as `GET /v1/audit`; returns the body."""
        return (await self._run(self._calls.request(method, path, params, json, headers))).body

    async def aclose(self) -> None:
        """Closes the connections."""
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self.aclose()

    def __repr__(self) -> str:
        return f"AsyncClient({self.url!r})"

    def _handle(self, document: models.Submission) -> AsyncSubmission:
        submission = AsyncSubmission._of(document)
        submission._client = self
        return submission

    async def _run(self, call: Call[T]) -> T:
        """Carries out the steps of a call."""
        body = _Body(self)
        try:
            step = next(call)
            while True:
                try:
                    result = await body.do(step)
                except (Refused, Broken) as error:
                    step = call.throw(error)
                else:
                    step = call.send(result)
        except StopIteration as done:
            result_of_call: T = done.value
            return result_of_call
        finally:
            call.close()
            await body.close()

    async def _stream(self, stream: Stream[T]) -> AsyncGenerator[T, None]:
        """Carries out the steps of a call with many results."""
        body = _Body(self)
        try:
            step = next(stream)
            while True:
                try:
                    if isinstance(step, Emit):
                        yield step.item
                        result = None
                    else:
                        result = await body.do(step)
                except (Refused, Broken) as error:
                    step = stream.throw(error)
                else:
                    step = stream.send(result)
        except StopIteration:
            return
        finally:
            stream.close()
            await body.close()


class _Body:
    """The stream that a call has open, and the steps that a client carries out."""

    def __init__(self, client: AsyncClient) -> None:
        self._client = client
        self._response: httpx.Response | None = None
        self._chunks: AsyncIterator[bytes] | None = None

    async def do(self, step: Step) -> Reply | bytes | tuple[str, int] | None:
        match step:
            case Sleep():
                await anyio.sleep(step.seconds)
                return None
            case NextChunk():
                return await self._next()
            case Digest():
                return await anyio.to_thread.run_sync(step.compute)
            case Request():
                return await self._send(step)
            case Open():
                await self.close()
                return await self._send(step)

    async def _next(self) -> bytes | None:
        if self._chunks is None:
            return None
        try:
            return await anext(self._chunks, None)
        except httpx.RequestError as error:
            raise Broken(error) from error

    async def _send(self, step: Request | Open) -> Reply:
        settings, http = self._client._settings, self._client._http
        token = settings.token
        text = None
        if token is not None:
            text = await anyio.to_thread.run_sync(token.current) if token.blocks else token.current()
        arguments = settings.arguments(step, text)
        try:
            if isinstance(step, Request):
                if step.file is not None:
                    arguments["content"] = _pieces(step.file)
                response = await http.request(**arguments)
                return settings.reply(response, response.content)
            response = await http.send(http.build_request(**arguments), stream=True)
            if response.is_success:
                self._response, self._chunks = response, response.aiter_bytes()
                return settings.reply(response, b"")
            try:
                return settings.reply(response, await response.aread())
            finally:
                await response.aclose()
        except httpx.RequestError as error:
            raise Broken(error) from error

    async def close(self) -> None:
        response, self._response, self._chunks = self._response, None, None
        if response is not None:
            await response.aclose()


async def _pieces(file: Path) -> AsyncGenerator[bytes, None]:
    """Reads a file."""
    async with await anyio.open_file(file, "rb") as content:
        while piece := await content.read(PIECE):
            yield piece
