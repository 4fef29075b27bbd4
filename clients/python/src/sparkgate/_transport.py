"""What both kinds of clients have in common: settings, certificates, requests and responses."""

from __future__ import annotations

import os
import ssl
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import httpx

from sparkgate import _tokens
from sparkgate._calls import Calls
from sparkgate._connection import Connection
from sparkgate._retry import Refused
from sparkgate._steps import Open, Reply, Request
from sparkgate.errors import ConfigurationError, api_error

#: Seconds for a connection.
_CONNECT = 10.0

try:
    VERSION = version("sparkgate")
except PackageNotFoundError:  # the sources, without an installation
    VERSION = "0"


class Settings:
    """The gateway of a client, and how to call it."""

    def __init__(
        self,
        url: str | None,
        token: str | None,
        context: str | None,
        *,
        token_file: str | os.PathLike[str] | None,
        ca_file: str | os.PathLike[str] | None,
        certificate: str | os.PathLike[str] | None,
        key: str | os.PathLike[str] | None,
        timeout: float,
        retry_seconds: float,
        reconnect_seconds: float,
        environ: Mapping[str, str] | None,
    ) -> None:
        environ = os.environ if environ is None else environ
        connection = Connection.find(
            url, context, environ, ca_file=_path(ca_file), certificate=_path(certificate), key=_path(key)
        )
        self.server = connection.server
        self.token = _tokens.find(connection, environ, token, _path(token_file))
        self.calls = Calls(retry_seconds, reconnect_seconds)
        self._timeout = timeout
        self.http: dict[str, Any] = {
            "verify": _certificates(connection),
            "headers": {"User-Agent": f"sparkgate-python/{VERSION}"},
            "limits": httpx.Limits(max_connections=None, max_keepalive_connections=20),
            # A proxy can't reach this machine's own addresses.
            "trust_env": environ is os.environ and not connection.server.is_loopback,
        }

    def timeouts(self, step: Request | Open) -> httpx.Timeout:
        """Returns the timeouts of a request."""
        read = step.silence if isinstance(step, Open) else self._timeout + step.longer_by
        return httpx.Timeout(self._timeout, connect=min(_CONNECT, self._timeout), read=read, pool=None)

    def arguments(self, step: Request | Open, token: str | None) -> dict[str, Any]:
        """Returns the arguments of httpx for a request."""
        request = step.request if isinstance(step, Open) else step
        headers = {"Accept": "application/json, application/problem+json", **request.headers}
        if token is not None:
            headers["Authorization"] = f"Bearer {token}"
        return {
            "method": request.method,
            "url": request.url(self.server.url),
            "params": list(request.params),
            "headers": headers,
            "json": request.json,
            "timeout": self.timeouts(step),
        }

    def reply(self, response: httpx.Response, body: bytes) -> Reply:
        """Returns a response, unless it is an error."""
        if response.is_success:
            return Reply(response.status_code, response.headers, body)
        hint = None
        if response.status_code == httpx.codes.UNAUTHORIZED:
            hint = _tokens.advice(self.token)
        elif response.is_redirect:
            hint = f"it points to {response.headers.get('location')}: use the URL of the gateway itself"
        raise Refused(api_error(response.status_code, response.headers, body, hint), response.headers)


def _path(path: str | os.PathLike[str] | None) -> str | None:
    return None if path is None else os.fspath(path)


def _certificates(connection: Connection) -> ssl.SSLContext:
    if not connection.server.is_https and connection.server.is_loopback:
        # None are needed, and reading the system's takes a while.
        return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context = ssl.create_default_context()
    if connection.ca_file:
        _load(connection.ca_file, lambda: context.load_verify_locations(connection.ca_file))
    if connection.certificate:
        certificate, key = connection.certificate, connection.key
        _load(certificate, lambda: context.load_cert_chain(certificate, key))
    return context


def _load(path: Path, load: Any) -> None:
    try:
        load()
    except (OSError, ssl.SSLError) as error:
        raise ConfigurationError(f"the certificates of {path} can't be used: {error}") from error
