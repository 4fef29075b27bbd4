"""The connection to a gateway."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseHook

if TYPE_CHECKING:
    from airflow.sdk import Connection

    from sparkgate import AsyncClient, Client

#: How long a call is repeated while the gateway is away or busy.
_RETRY_SECONDS = 120.0
#: How long a wait goes on while the gateway is away: the job runs on without it.
_RECONNECT_SECONDS = 3600.0

# It logs every request, which would fill the logs of tasks.
if logging.getLogger("httpx").level == logging.NOTSET:
    logging.getLogger("httpx").setLevel(logging.WARNING)


class SparkgateHook(BaseHook):
    """Connects to a gateway.

    The connection has the gateway's URL as `host`, or its parts in `schema`, `host` and `port`, and the token as `password`.
    Neither variables nor files of the worker's account are used.

    :param sparkgate_conn_id: the id of the connection
    """

    conn_name_attr = "sparkgate_conn_id"
    default_conn_name = "sparkgate_default"
    conn_type = "sparkgate"
    hook_name = "Sparkgate"

    def __init__(self, sparkgate_conn_id: str = default_conn_name, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.sparkgate_conn_id = sparkgate_conn_id
        # Read once: a signal handler that kills must not ask the task's supervisor again.
        self._arguments: dict[str, Any] | None = None
        self._link_url: str | None = None

    def get_conn(self, **options: Any) -> Client:
        """Creates a client of the gateway; `options` are those of `sparkgate.Client`."""
        from sparkgate import Client

        if self._arguments is None:
            self._read(self.get_connection(self.sparkgate_conn_id))
        return Client(**{**(self._arguments or {}), **options})

    async def get_async_conn(self, **options: Any) -> AsyncClient:
        """Creates an asynchronous client of the gateway; `options` are those of `sparkgate.AsyncClient`."""
        from sparkgate import AsyncClient

        if self._arguments is None:
            self._read(await self.aget_connection(self.sparkgate_conn_id))
        arguments = {**(self._arguments or {}), **options}
        # It reads files of certificates.
        return await asyncio.to_thread(lambda: AsyncClient(**arguments))

    def link(self, submission_id: str) -> str:
        """Returns the URL of a submission, for a browser."""
        with self.get_conn() as client:
            return f"{(self._link_url or client.url).rstrip('/')}/v1/submissions/{submission_id}"

    def test_connection(self) -> tuple[bool, str]:
        """Asks the gateway who the caller is."""
        try:
            with self.get_conn(retry_seconds=0) as client:
                return True, f"{client.url} knows this connection as {client.me().subject}"
        except Exception as error:
            return False, str(error)

    def _read(self, connection: Connection) -> None:
        extra = connection.extra_dejson
        token_file = extra.get("token_file") or None
        self._arguments = {
            "url": url_of(connection),
            "token": None if token_file else connection.password or None,
            "token_file": token_file,
            "ca_file": extra.get("ca_file") or None,
            "certificate": extra.get("certificate") or None,
            "key": extra.get("key") or None,
            "retry_seconds": _RETRY_SECONDS,
            "reconnect_seconds": _RECONNECT_SECONDS,
            "environ": {},
        }
        self._link_url = extra.get("link_url") or None


def url_of(connection: Connection) -> str:
    """Returns the gateway's URL of a connection."""
    host = connection.host or ""
    if not host:
        raise ValueError(f"the connection `{connection.conn_id}` has no host: it is the URL of the gateway, or its host")
    if "://" in host:
        return host
    if ":" in host and not host.startswith("["):
        host = f"[{host}]" if host.count(":") > 1 else host
    port = f":{connection.port}" if connection.port else ""
    return f"{connection.schema or 'http'}://{host}{port}"
