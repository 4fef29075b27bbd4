"""Retries of a call: which failures may pass, and the pauses between tries."""

from __future__ import annotations

import logging
import random
import time
from typing import Any

import httpx

from sparkgate._steps import Call, Open, Reply, Request, Sleep
from sparkgate.errors import ApiError, GatewayUnreachable

log = logging.getLogger("sparkgate")

#: The first pause, and the longest one without a `Retry-After`.
_FIRST, _LONGEST = 0.4, 10.0
#: The upper bound for a `Retry-After`.
_LONGEST_ASKED = 60.0
#: The shortest pause that is logged.
_LONG = 1.0


class Refused(Exception):
    """The gateway's response is an error. Clients throw it into a call, with the pause that the gateway asks for."""

    def __init__(self, error: ApiError, headers: httpx.Headers) -> None:
        self.error = error
        try:
            self.retry_after: float | None = float(headers["retry-after"])
        except (KeyError, ValueError):
            self.retry_after = None


class Broken(Exception):
    """The connection failed. Clients throw it into a call."""

    def __init__(self, cause: Exception) -> None:
        self.cause = cause
        #: The request was not sent.
        self.is_unsent = isinstance(cause, (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout))


def send(step: Request | Open, seconds: float) -> Call[Reply]:
    """Sends a request until it succeeds or is refused, for so many seconds of retries."""
    request = step.request if isinstance(step, Open) else step
    deadline = time.monotonic() + seconds
    pause = _FIRST
    while True:
        try:
            reply: Any = yield step
            return reply  # type: ignore[no-any-return]
        except Refused as refused:
            error: ApiError | GatewayUnreachable = refused.error
            asked, may_repeat = refused.retry_after, refused.error.retryable and request.is_repeatable
        except Broken as broken:
            cause = str(broken.cause) or type(broken.cause).__name__
            error = GatewayUnreachable(f"{request.action}: {cause}")
            error.__cause__ = broken.cause
            asked, may_repeat = None, request.is_repeatable or broken.is_unsent
        # Clients that failed together don't come back together.
        wait = min(asked, _LONGEST_ASKED) if asked is not None else pause * random.uniform(0.5, 1)  # noqa: S311
        if not may_repeat or time.monotonic() + wait > deadline:
            raise error from error.__cause__
        if wait >= _LONG:
            log.warning("%s\n  retrying in %.0f s", error, wait)
        yield Sleep(wait)
        pause = min(pause * 2, _LONGEST)
