"""The steps of a call. A call is a generator of steps, so that it is written once for both kinds of clients.

A client carries out a step and sends its result back; it throws the step's error into the generator.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any, Generic, TypeVar
from urllib.parse import quote

import httpx

T = TypeVar("T")

#: The piece in which a file is read.
PIECE = 256 << 10


@dataclass(frozen=True)
class Request:
    """A request to the gateway, whose whole response is read."""

    #: What the call does, in words for an error.
    action: str
    method: str
    #: The path below `/v1`, in pieces.
    path: tuple[str, ...]
    params: tuple[tuple[str, str], ...] = ()
    headers: dict[str, str] = field(default_factory=dict)
    json: Any = None
    #: The file whose content is the body.
    file: Path | None = None
    #: Seconds that the gateway may take longer than usual.
    longer_by: float = 0
    #: Whether it can be sent again without doing something twice.
    is_repeatable: bool = True

    def url(self, server: str) -> str:
        """Returns the URL of the request."""
        return "/".join([server, "v1", *(quote(piece, safe="") for piece in self.path)])


@dataclass(frozen=True)
class Open:
    """A request whose response is read as it arrives, by `NextChunk`. It replaces the stream that is open."""

    request: Request
    #: The longest silence.
    silence: float


@dataclass(frozen=True)
class NextChunk:
    """The next piece of the open stream: bytes, or `None` at its end."""


@dataclass(frozen=True)
class Digest:
    """The SHA-256 of a file in hex, and its size."""

    path: Path

    def compute(self) -> tuple[str, int]:
        """Reads the file."""
        digest, size = sha256(), 0
        with self.path.open("rb") as content:
            while piece := content.read(PIECE):
                digest.update(piece)
                size += len(piece)
        return digest.hexdigest(), size


@dataclass(frozen=True)
class Sleep:
    """A pause."""

    seconds: float


@dataclass(frozen=True)
class Emit(Generic[T]):
    """An item for the caller."""

    item: T


@dataclass(frozen=True)
class Reply:
    """A response. The body of a stream that was opened is empty."""

    status: int
    headers: httpx.Headers
    body: bytes


Step = Request | Open | NextChunk | Digest | Sleep
#: A call with one result.
Call = Generator[Step, Any, T]
#: A call with many results.
Stream = Generator[Step | Emit[T], Any, None]
