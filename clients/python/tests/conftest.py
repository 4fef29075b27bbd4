"""A gateway for all tests of the client."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec

import pytest
from dev import Dev, free_address

from sparkgate import Client

#: The tests of integrations run where these packages are installed.
collect_ignore = [f"test_{package}.py" for package in ("dagster", "kubeflow") if find_spec(package) is None]


@pytest.fixture(scope="session")
def dev() -> Iterator[Dev]:
    dev = Dev("--connect-listen", free_address())
    yield dev
    dev.stop()


@pytest.fixture
def client(dev: Dev) -> Iterator[Client]:
    with Client(dev.url, environ={}) as client:
        yield client


@pytest.fixture(scope="session")
def waits(dev: Dev) -> str:
    """An application that prints numbered lines, and ends when the file of its first argument exists.

    It prints half of them at once and the others when the file `….more` exists.
    """
    return dev.job(
        "waits",
        """
import pathlib, sys, time
gate, lines = pathlib.Path(sys.argv[1]), int(sys.argv[2])
def wait(path):
    while not path.exists():
        time.sleep(0.05)
for number in range(lines):
    if number == lines // 2:
        wait(gate.with_suffix(".more"))
    print("line", number)
wait(gate)
""",
    )


@pytest.fixture(scope="session")
def ends(dev: Dev) -> str:
    """An application that ends with the exit code of its first argument."""
    return dev.job("ends", "import sys\nprint('ends with', sys.argv[1])\nsys.exit(int(sys.argv[1]))\n")
