"""Which gateway is called and how: from arguments, the environment, and the contexts of the user.

The rules are those of the command line (`docs/use/client.md` of the gateway).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sparkgate import _files
from sparkgate._server import Server
from sparkgate.errors import ConfigurationError

#: The gateway of a user without a context: that of `sparkgate dev`.
DEFAULT = "http://127.0.0.1:6066"
_KEYS = {"server", "caFile", "certificate", "key", "token", "tokenFile"}


@dataclass(frozen=True)
class Context:
    """A gateway with a name, and what is needed to call it."""

    name: str
    server: Server
    ca_file: Path | None
    certificate: Path | None
    key: Path | None
    token: str | None
    token_file: Path | None

    @classmethod
    def parse(cls, name: str, document: object, path: Path) -> Context:
        """Parses an entry of the file of contexts."""
        where = f"reading {path}: context {name!r}"
        if not re.fullmatch(r"[A-Za-z0-9._-]{1,63}", name):
            raise ConfigurationError(f"{where}: a name has 1 to 63 letters, digits, `-`, `_` or `.`")
        if not isinstance(document, dict) or not isinstance(document.get("server"), str):
            raise ConfigurationError(f"{where} has no `server`")
        if unknown := sorted(set(document) - _KEYS):
            raise ConfigurationError(f"{where} has unknown fields: {', '.join(unknown)}")
        if not all(isinstance(value, str) for value in document.values()):
            raise ConfigurationError(f"{where}: its fields are texts")

        def text(key: str) -> str | None:
            value: str = document.get(key, "")
            return None if value in ("", "~", "null") else value

        def file(key: str) -> Path | None:
            # Relative paths are relative to the file, so that they mean the same in every directory.
            value = text(key)
            return None if value is None else path.parent / value

        try:
            server = Server.parse(document["server"])
        except ConfigurationError:
            raise ConfigurationError(f"{where}: its `server` is not the URL of a gateway") from None
        return cls(name, server, file("caFile"), file("certificate"), file("key"), text("token"), file("tokenFile"))


@dataclass(frozen=True)
class Contexts:
    """The contexts of a user, and which of them is used by default."""

    path: Path
    current: str | None
    entries: Mapping[str, Any]
    #: Other users can read the file.
    is_exposed: bool

    @classmethod
    def read(cls, path: Path) -> Contexts:
        """Reads the contexts. A user without the file has none."""
        found = _files.read(path)
        text, is_exposed = found or ("", False)
        document = _files.parse(path, text)
        entries = document.get("contexts") or {}
        if not isinstance(entries, dict) or set(document) - {"current", "contexts"}:
            raise ConfigurationError(f"reading {path}: expected `current` and `contexts`")
        return cls(path, document.get("current") or None, entries, is_exposed)

    def find(self, name: str) -> Context | None:
        """Returns the context of this name, if there is one."""
        return Context.parse(name, self.entries[name], self.path) if name in self.entries else None

    def get(self, name: str) -> Context:
        """Returns the context of this name."""
        context = self.find(name)
        if context is None:
            others = f"it has {', '.join(sorted(self.entries))}" if self.entries else "it has none"
            raise ConfigurationError(
                f"there is no context `{name}` in {self.path}: {others}. "
                f"Create it with `sparkgate context set {name} --server URL`"
            )
        return context


@dataclass(frozen=True)
class Connection:
    """A gateway, and how to reach it."""

    server: Server
    context: Context | None
    contexts: Contexts | None
    ca_file: Path | None
    certificate: Path | None
    key: Path | None

    @classmethod
    def find(
        cls,
        url: str | None,
        context: str | None,
        environ: Mapping[str, str],
        *,
        ca_file: str | None = None,
        certificate: str | None = None,
        key: str | None = None,
    ) -> Connection:
        """Finds the gateway. Arguments precede the environment, the environment precedes the current context.

        What a context has besides its URL is used only for this URL: its token is for no other gateway.
        """
        for argument, value in (("url", url), ("context", context)):
            if value is not None and not value.strip():
                raise ConfigurationError(f"`{argument}` is empty")
        path = _files.config_file(environ)
        contexts = Contexts.read(path) if path else None
        if context is not None:
            _named(contexts, context)
        name: str | None = context or environ.get("SPARKGATE_CLIENT_CONTEXT") or (contexts.current if contexts else None)
        # A context that is an argument precedes a URL of the environment.
        address = url or (None if context else environ.get("SPARKGATE_URL"))
        server = Server.parse(address) if address else None
        chosen: Context | None = None
        if name and server is None:
            chosen = _named(contexts, name)
        elif name and contexts:
            chosen = contexts.find(name)
            if chosen and chosen.server != server:
                chosen = None
        server = server or (chosen.server if chosen else Server.parse(DEFAULT))
        ca_file = ca_file or environ.get("SPARKGATE_CA_FILE")
        if not certificate:
            certificate = environ.get("SPARKGATE_CLIENT_CERTIFICATE")
            key = key or environ.get("SPARKGATE_CLIENT_KEY")
        own_certificate = Path(certificate) if certificate else None
        own_key = Path(key) if key else None
        # A certificate and its key are of one place.
        if not own_certificate and chosen:
            own_certificate, own_key = chosen.certificate, chosen.key
        trusted = Path(ca_file) if ca_file else (chosen.ca_file if chosen else None)
        return cls(server, chosen, contexts, trusted, own_certificate, own_key)


def _named(contexts: Contexts | None, name: str) -> Context:
    if contexts is None:
        raise ConfigurationError("there is no place for contexts: HOME is not set. Set SPARKGATE_CONFIG to a file")
    return contexts.get(name)
