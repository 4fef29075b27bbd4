"""The token that a request carries, and where it is from."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from sparkgate import _files
from sparkgate._connection import Connection
from sparkgate._login import LoginToken
from sparkgate._server import Server
from sparkgate.errors import ConfigurationError


class Token(Protocol):
    """The source of a token."""

    #: Whether `current` may wait for a file, a lock or another server.
    blocks: bool
    #: Where the token is from, in words for the user.
    origin: str

    def current(self) -> str:
        """Returns the token for a request."""


class Fixed:
    """A token that doesn't change."""

    blocks = False

    def __init__(self, token: str, origin: str) -> None:
        self._token = _checked(token, origin)
        self.origin = origin

    def current(self) -> str:
        """Returns the token."""
        return self._token


class TokenFile:
    """A file with a token, which its writer may replace at any time, as Kubernetes does."""

    blocks = True

    def __init__(self, path: Path) -> None:
        self._path = path
        self.origin = f"the file {path}"
        self.current()

    def current(self) -> str:
        """Reads the token again."""
        text = _files.read_secret(self._path)
        if text is None:
            raise ConfigurationError(f"the token file {self._path}: No such file or directory")
        return _checked(text, self.origin)


def _checked(token: str, origin: str) -> str:
    token = token.strip()
    if not token:
        raise ConfigurationError(f"the token of {origin} is empty")
    if not (token.isascii() and token.isprintable()) or " " in token:
        raise ConfigurationError(f"the token of {origin} has characters that no token has")
    return token


def find(connection: Connection, environ: Mapping[str, str], token: str | None, token_file: str | None) -> Token | None:
    """Returns the token's source: the arguments, the environment, the context, else a `sparkgate dev` on this machine."""
    found = _given(environ, token, token_file) or _of_context(connection) or _of_dev(connection.server, environ)
    if found is not None and not connection.server.is_private:
        raise ConfigurationError(
            f"the token is not sent to {connection.server}, because anyone on the way could read it there: use an https URL"
        )
    return found


def _given(environ: Mapping[str, str], token: str | None, token_file: str | None) -> Token | None:
    if token is not None and token_file is not None:
        raise ConfigurationError("give `token` or `token_file`, not both")
    if token is not None:
        return Fixed(token, "the argument `token`")
    if token_file is not None:
        return TokenFile(Path(token_file))
    if text := environ.get("SPARKGATE_TOKEN", "").strip():
        return Fixed(text, "SPARKGATE_TOKEN")
    if path := environ.get("SPARKGATE_TOKEN_FILE"):
        return TokenFile(Path(path))
    return None


def _of_context(connection: Connection) -> Token | None:
    context, contexts = connection.context, connection.contexts
    if context is None or contexts is None:
        return None
    if login := LoginToken.find(contexts.path, context, connection.ca_file):
        return login
    if context.token and context.token_file:
        raise ConfigurationError(f"the context `{context.name}` has `token` and `tokenFile`: remove one of them")
    if context.token:
        if contexts.is_exposed:
            raise _files.exposed(contexts.path)
        return Fixed(context.token, f"the context `{context.name}`")
    return TokenFile(context.token_file) if context.token_file else None


def _of_dev(server: Server, environ: Mapping[str, str]) -> Token | None:
    """Returns the token that a `sparkgate dev` of this user has written for its port."""
    if not server.is_loopback:
        return None
    if named := environ.get("SPARKGATE_DEV_DIR"):
        folder = Path(named)
    elif os.geteuid() == 0:
        folder = Path("/var/lib/sparkgate-dev")
    elif state := environ.get("XDG_STATE_HOME"):
        folder = Path(state) / "sparkgate-dev"
    elif home := environ.get("HOME"):
        folder = Path(home) / ".local/state/sparkgate-dev"
    else:
        return None
    path = folder / "token"
    try:
        status = path.lstat()
        # A file that another user has or can read is ignored, and so is a pipe, which could block.
        is_own = stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid() and not status.st_mode & 0o077
        text = path.read_text(encoding="utf-8") if is_own else ""
    except (OSError, UnicodeDecodeError):
        return None
    url, _, token = text.split("\n")[0].partition(" ")
    try:
        of = Server.parse(url)
    except ConfigurationError:
        return None
    is_its = of.is_loopback and of.port == server.port and bool(token.strip())
    return Fixed(token, f"`sparkgate dev` ({path})") if is_its else None


def advice(token: Token | None) -> str:
    """Returns what to do about a gateway that doesn't accept the token."""
    if token is None:
        return "no token was sent: run `sparkgate login`, or set SPARKGATE_TOKEN"
    return f"the token is from {token.origin}: replace it, or run `sparkgate login`"
