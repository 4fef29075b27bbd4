"""The exceptions of this package. All are a `SparkgateError`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sparkgate.models import ConnectSession, Submission

#: The longest part of a foreign response that an error repeats.
_LONGEST = 200


class SparkgateError(Exception):
    """Base class of all errors of this package."""

    #: Whether the same call may succeed later.
    retryable: bool = False


class ConfigurationError(SparkgateError):
    """The settings name no gateway that can be called, or a file of them can't be used."""


class GatewayUnreachable(SparkgateError):
    """The gateway can't be reached, or the connection broke, also after retries."""

    retryable = True


class WaitTimeout(SparkgateError, TimeoutError):
    """The timeout of a wait expired before the submission reached the state."""

    retryable = True


class SubmissionFailed(SparkgateError):
    """The submission ended in another state than FINISHED. `submission` has the reason in `failure`."""

    def __init__(self, submission: Submission) -> None:
        self.submission = submission
        failure = submission.failure
        reason = f": {failure.code.value}: {failure.message}" if failure else ""
        super().__init__(f"{submission.id} is {submission.state.value}{reason}")


class SessionEnded(SparkgateError):
    """The session of Spark Connect has ended before it was ready. `session` has the reason in `message`."""

    def __init__(self, session: ConnectSession) -> None:
        self.session = session
        super().__init__(f"the session {session.id} has ended: {session.message}")


@dataclass(frozen=True)
class FieldError:
    """An invalid part of a request."""

    detail: str
    #: The field of the body, as a JSON pointer in a URI fragment.
    pointer: str | None = None
    #: The name of the query parameter or header.
    parameter: str | None = None


class ApiError(SparkgateError):
    """The gateway's refusal: a problem document (RFC 9457), or the response of a proxy, which has no `code`.

    The codes are listed in the gateway's `docs/reference/problems.md`.
    """

    def __init__(self, status: int, document: Mapping[str, Any], *, request_id: str | None, retryable: bool) -> None:
        def text(name: str) -> str | None:
            value = document.get(name)
            return value if isinstance(value, str) and value else None

        #: The HTTP status.
        self.status = status
        #: The stable code, such as `idempotency-key-reused`. Empty if the response isn't the gateway's.
        self.code = text("code") or ""
        #: The URI of the kind of problem.
        self.type = text("type")
        self.title = text("title") or f"HTTP {status}"
        #: What is wrong in this case, for people. The words may change.
        self.detail = text("detail") or ""
        #: The id of the request in the gateway's log.
        self.request_id = text("requestId") or request_id
        #: The submission that the problem is about, for `name-taken`, `idempotency-key-reused` and `in-doubt`.
        self.submission_id = text("submissionId")
        #: The invalid parts of the request.
        self.errors = tuple(_field_errors(document.get("errors")))
        self.retryable = retryable
        #: The whole document, with the members of its kind, such as `violations`.
        self.document = dict(document)
        super().__init__(status, self.code)

    def __str__(self) -> str:
        lines = [self.title]
        if self.detail and self.detail != self.title and not any(self.detail.endswith(e.detail) for e in self.errors):
            lines[0] += f": {self.detail}"
        for error in self.errors:
            place = error.pointer or error.parameter
            lines.append(f"  {place}: {error.detail}" if place else f"  {error.detail}")
        if self.request_id:
            lines.append(f"  request id: {self.request_id}")
        return "\n".join(lines)


class InvalidRequest(ApiError):
    """The request can't be run as it is (400, 413, 415, 422); `errors` and `detail` say what to correct."""


class Unauthenticated(ApiError):
    """The request has no valid credentials (401)."""


class Denied(ApiError):
    """The caller may not do this (403)."""


class NotFound(ApiError):
    """There is no such submission, log or attempt (404)."""


class NameTaken(ApiError):
    """A live submission has this unique name (409)."""


class CursorExpired(ApiError):
    """What comes after the cursor is not kept any more (410): start again without a cursor."""


class Overloaded(ApiError):
    """The caller sends too much, or there is no room for more just now (429)."""


class Unavailable(ApiError):
    """The gateway or what it needs can't be reached now (502, 503, 504)."""


_CLASSES: dict[int, type[ApiError]] = {
    400: InvalidRequest,
    401: Unauthenticated,
    403: Denied,
    404: NotFound,
    409: NameTaken,
    410: CursorExpired,
    413: InvalidRequest,
    415: InvalidRequest,
    422: InvalidRequest,
    429: Overloaded,
    502: Unavailable,
    503: Unavailable,
    504: Unavailable,
}


def api_error(status: int, headers: Mapping[str, str], body: bytes, advice: str | None = None) -> ApiError:
    """Creates the error of a response that is not a success."""
    document = _document(status, body)
    if advice:
        detail = document.get("detail")
        document["detail"] = f"{detail}; {advice}" if detail else advice
    retryable = status in (429, 502, 503, 504)
    # The request alone exceeds the limit: it would be refused again.
    if document.get("code") == "rate-limited" and "retry-after" not in headers:
        retryable = False
    error = _CLASSES.get(status, ApiError)
    return error(status, document, request_id=headers.get("x-request-id"), retryable=retryable)


def _document(status: int, body: bytes) -> dict[str, Any]:
    try:
        document = json.loads(body)
    except ValueError:
        document = None
    if isinstance(document, dict) and isinstance(document.get("title"), str):
        return document
    # Another server's response, or an error of Spark's protocol.
    try:
        title = f"HTTP {status} {HTTPStatus(status).phrase}"
    except ValueError:
        title = f"HTTP {status}"
    text = body.decode(errors="replace").strip()
    if isinstance(document, dict) and isinstance(document.get("message"), str):
        detail = document["message"]
    else:
        detail = "" if text.startswith(("<", "{")) else text
    return {"title": title, "detail": detail.split("\n")[0][:_LONGEST]}


def _field_errors(errors: object) -> list[FieldError]:
    found = []
    for error in errors if isinstance(errors, list) else []:
        if isinstance(error, dict):
            found.append(FieldError(str(error.get("detail", "")), error.get("pointer"), error.get("parameter")))
    return found
