"""Sessions of Spark Connect: a Spark of one's own in the cluster, for notebooks and programs."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, TypedDict

from typing_extensions import Unpack

from sparkgate._request import Scalar, Seconds, seconds, texts, whole_seconds
from sparkgate.client import Client
from sparkgate.errors import ConfigurationError, SessionEnded, WaitTimeout
from sparkgate.models import ConnectSession, ConnectSessionState, NewSession

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_log = logging.getLogger("sparkgate")
#: Pause between two looks at a session that is being opened.
_LOOK = 1.0


class SessionOptions(TypedDict, total=False):
    """What is asked of a new session. A live one of the same name keeps what it has."""

    #: Use the session of this name that members of the tenant share, if its operator permits such sessions.
    shared: bool
    #: Spark properties. Numbers and booleans become texts.
    conf: Mapping[str, Scalar] | None
    #: Environment variables of the driver.
    env: Mapping[str, str] | None
    #: End the session after so long without a request.
    idle_timeout: Seconds | None
    #: End it this long after its driver started, whether it is used or not.
    run_timeout: Seconds | None
    #: End it if its driver isn't running this long after it was queued.
    start_timeout: Seconds | None
    #: The Spark release or its line: 4.0 or later.
    spark_version: str | None
    #: The queue that has to admit it.
    queue: str | None
    priority: int | None
    labels: Mapping[str, str] | None
    #: A pod as a mapping, a pod as YAML, or the name of one of the operator's templates.
    driver_pod_template: Mapping[str, Any] | str | None
    executor_pod_template: Mapping[str, Any] | str | None


def connect(
    name: str = "default",
    *,
    client: Client | None = None,
    timeout: Seconds | None = 600,
    **options: Unpack[SessionOptions],
) -> SparkSession:
    """Opens the session of this name, or uses yours again if it lives. Returns a `SparkSession` of PySpark, connected to it.

    Waits until the session is ready, at most `timeout`. What it waits for is logged. The session ends when no client uses it for
    its idle timeout; `session` ends it at the end of a block. `client` is the gateway's; by default that of `Client()`.

    Raises `SessionEnded` if the session ends before it is ready, and `WaitTimeout`.
    """
    with nullcontext(client) if client is not None else Client() as gateway:
        opened = open_session(gateway, name, seconds(timeout), options)
        return connected(gateway, opened)


@contextmanager
def session(
    name: str = "default",
    *,
    client: Client | None = None,
    timeout: Seconds | None = 600,
    **options: Unpack[SessionOptions],
) -> Iterator[SparkSession]:
    """Does the same for a block, and ends the session after it."""
    with nullcontext(client) if client is not None else Client() as gateway:
        opened = open_session(gateway, name, seconds(timeout), options)
        try:
            spark = connected(gateway, opened)
            try:
                yield spark
            finally:
                spark.stop()
        finally:
            gateway.request("DELETE", f"/v1/sessions/{opened.id}")


def open_session(client: Client, name: str, timeout: float | None, options: SessionOptions) -> ConnectSession:
    """Returns the caller's live session of this name, or a new one, when it is ready.

    Raises `SessionEnded` if it ends before, and `WaitTimeout`.
    """
    deadline = None if timeout is None else time.monotonic() + timeout
    opened = _read(client.request("POST", "/v1/sessions", json=_body(name, options)))
    said = ""
    while opened.state != ConnectSessionState.READY:
        if opened.state == ConnectSessionState.ENDED:
            raise SessionEnded(opened)
        if opened.message and opened.message != said:
            said = opened.message
            _log.info("%s: %s", opened.id, said)
        if deadline is not None and time.monotonic() >= deadline:
            raise WaitTimeout(f"the session {opened.id} isn't ready after {timeout:g} seconds: {opened.message}")
        time.sleep(_LOOK)
        opened = _read(client.request("GET", f"/v1/sessions/{opened.id}"))
    return opened


def _read(body: bytes) -> ConnectSession:
    return ConnectSession.model_validate_json(body)


def _body(name: str, options: SessionOptions) -> dict[str, Any]:
    request = NewSession(
        name=name,
        shared=options.get("shared") or None,
        spark_properties=texts("conf", options.get("conf")),
        environment_variables=texts("env", options.get("env")),
        idle_timeout_seconds=whole_seconds(options.get("idle_timeout")),
        run_timeout_seconds=whole_seconds(options.get("run_timeout")),
        start_timeout_seconds=whole_seconds(options.get("start_timeout")),
        spark_version=options.get("spark_version"),
        queue=options.get("queue"),
        priority=options.get("priority"),
        labels=None if (labels := options.get("labels")) is None else dict(labels),
        driver_pod_template=options.get("driver_pod_template"),
        executor_pod_template=options.get("executor_pod_template"),
    )
    return request.model_dump(mode="json", by_alias=True, exclude_none=True)


def connected(client: Client, opened: ConnectSession) -> SparkSession:
    """Returns PySpark's client of a session, with the caller's token. It sends nothing before its first use.

    Raises `ConfigurationError` without PySpark.
    """
    try:
        from pyspark.sql import SparkSession  # noqa: PLC0415  only this function needs it
    except ImportError as error:
        raise ConfigurationError("PySpark isn't installed: `pip install pyspark-client`") from error
    token = client._settings.token
    credentials = "" if token is None else f";token={token.current()}"
    return SparkSession.builder.remote(f"{opened.url}{credentials}").create()
