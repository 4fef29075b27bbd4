"""The client's own files: where they are, and which of them may be read."""

from __future__ import annotations

import fcntl
import os
import stat
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from sparkgate.errors import ConfigurationError


def config_file(environ: Mapping[str, str]) -> Path | None:
    """Returns the file of contexts: `SPARKGATE_CONFIG`, or below `XDG_CONFIG_HOME` or `~/.config`."""
    if named := environ.get("SPARKGATE_CONFIG"):
        return Path(named).absolute()
    base = environ.get("XDG_CONFIG_HOME", "")
    # The XDG Base Directory Specification has relative paths ignored.
    if Path(base).is_absolute():
        return Path(base) / "sparkgate/config.yaml"
    if home := environ.get("HOME"):
        return Path(home) / ".config/sparkgate/config.yaml"
    return None


def read(path: Path) -> tuple[str, bool] | None:
    """Reads a file. Returns its text and whether other users can read it; `None` if it doesn't exist."""
    try:
        with path.open(encoding="utf-8") as file:
            return file.read(), _is_exposed(file.fileno())
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"reading {path}: {error}") from error


def read_secret(path: Path) -> str | None:
    """Reads a file that holds a secret; `None` if it doesn't exist."""
    found = read(path)
    if found is None:
        return None
    if found[1]:
        raise exposed(path)
    return found[0]


def exposed(path: Path) -> ConfigurationError:
    """Returns the refusal of a file that other users can read, as `ssh` refuses such keys."""
    return ConfigurationError(f"{path} holds a secret, and other users can read it: run `chmod 600 {path}`")


def _is_exposed(file: int) -> bool:
    """Returns whether other users can read a file that this user can change.

    A file of a mounted Secret belongs to root or is on a read-only file system: its mode is not this user's choice.
    """
    status = os.fstat(file)
    is_read_only = bool(os.fstatvfs(file).f_flag & os.ST_RDONLY)
    return stat.S_ISREG(status.st_mode) and bool(status.st_mode & 0o077) and status.st_uid == os.geteuid() and not is_read_only


def parse(path: Path, text: str) -> dict[str, Any]:
    """Parses a file of the client. All scalars stay texts. An error has no part of the text, which may be a secret."""
    try:
        document = yaml.load(text, Loader=yaml.BaseLoader)  # noqa: S506 (it creates texts only)
    except yaml.MarkedYAMLError as error:
        line = f" in line {error.problem_mark.line + 1}" if error.problem_mark else ""
        raise ConfigurationError(f"reading {path}: this is not YAML{line}") from None
    except yaml.YAMLError:
        raise ConfigurationError(f"reading {path}: this is not YAML") from None
    if document in (None, ""):
        return {}
    if not isinstance(document, dict):
        raise ConfigurationError(f"reading {path}: expected a mapping")
    return document


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Holds the lock of a file between processes, the command line's included."""
    try:
        with path.open("a") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield
    except OSError as error:
        raise ConfigurationError(f"locking {path}: {error}") from error


def write_private(path: Path, document: Mapping[str, Any]) -> None:
    """Replaces a file in one step. Only this user can read it, from its first byte on."""
    path = path.resolve()
    try:
        handle, name = tempfile.mkstemp(prefix=".sparkgate-", dir=path.parent)
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                yaml.safe_dump(dict(document), file, sort_keys=False)
                file.flush()
                os.fsync(file.fileno())
            os.replace(name, path)
        except BaseException:
            os.unlink(name)
            raise
    except OSError as error:
        raise ConfigurationError(f"writing {path}: {error}") from error
