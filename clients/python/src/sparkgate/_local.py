"""Files on this machine among the URIs of a submission."""

from __future__ import annotations

import os
from pathlib import Path

from sparkgate.client import Client


def uploaded(client: Client, entry: str | os.PathLike[str], namespace: str | None) -> str:
    """Returns the URI of an application or a module. A file on this machine is uploaded; a URI stays as it is."""
    text = os.fspath(entry)
    if ":" in text and not Path(text).exists():
        return text
    return client.upload(text, namespace=namespace)
