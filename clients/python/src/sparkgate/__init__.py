"""Client of Sparkgate, an HTTP gateway for Apache Spark on Kubernetes.

from sparkgate import Client

with Client() as client:
    job = client.submit("local:///opt/app/nightly.py", "2026-01-02", conf={"spark.executor.instances": 2})
    print(job.wait(check=True).state)
"""

from sparkgate._request import Options
from sparkgate._sessions import SessionOptions, connect, session
from sparkgate._transport import VERSION as __version__
from sparkgate.aio import AsyncClient, AsyncSubmission
from sparkgate.client import Client, Submission
from sparkgate.errors import (
    ApiError,
    ConfigurationError,
    CursorExpired,
    Denied,
    FieldError,
    GatewayUnreachable,
    InvalidRequest,
    NameTaken,
    NotFound,
    Overloaded,
    SessionEnded,
    SparkgateError,
    SubmissionFailed,
    Unauthenticated,
    Unavailable,
    WaitTimeout,
)
from sparkgate.models import Event, FailureClass, FailureCode, MaxRetries, SubmissionState

__all__ = [
    "ApiError",
    "AsyncClient",
    "AsyncSubmission",
    "Client",
    "ConfigurationError",
    "CursorExpired",
    "Denied",
    "Event",
    "FailureClass",
    "FailureCode",
    "FieldError",
    "GatewayUnreachable",
    "InvalidRequest",
    "MaxRetries",
    "NameTaken",
    "NotFound",
    "Options",
    "Overloaded",
    "SessionEnded",
    "SessionOptions",
    "SparkgateError",
    "Submission",
    "SubmissionFailed",
    "SubmissionState",
    "Unauthenticated",
    "Unavailable",
    "WaitTimeout",
    "__version__",
    "connect",
    "session",
]
