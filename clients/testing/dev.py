"""A `sparkgate dev` for the tests of the Python packages."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import httpx

ROOT = Path(__file__).resolve().parents[2]

#: Stands in for Spark's launcher: a script of the tests runs at once, without a JVM; everything else runs in the real Spark.
LAUNCHER = """#!/bin/sh
for arg; do
    case $arg in
        local://{jobs}/*.py)
            while [ "$1" != "$arg" ]; do shift; done
            shift
            exec python3 -u "${{arg#local://}}" "$@" ;;
    esac
done
exec {spark}/bin/spark-submit "$@"
"""


def until(what: str, done: Callable[[], bool], seconds: float = 180, pause: float = 0.05) -> None:
    """Waits for a condition, as long as a Spark job may take."""
    deadline = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < deadline, f"not within {seconds:.0f} seconds: {what}"
        time.sleep(pause)


def free_address() -> str:
    """Returns an address on this machine that is free now."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{listener.getsockname()[1]}"


class Dev:
    """A gateway with its database and its cluster."""

    def __init__(self, *options: str) -> None:
        self.dir = Path(tempfile.mkdtemp(prefix="sparkgate-python-"))
        # If this runs as root, Postgres runs as another account.
        self.dir.chmod(0o755)
        self.jobs = self.dir / "jobs"
        self.jobs.mkdir()
        self._options = options
        self._address, self._sandbox = free_address(), free_address()
        self._process: subprocess.Popen[bytes] | None = None
        self._write_spark()
        self.start()

    @property
    def url(self) -> str:
        """The gateway's URL."""
        return f"http://{self._address}"

    @property
    def token(self) -> str:
        """The token that it has created, with `--require-token`: after its URL in the file."""
        return (self.dir / "dev/token").read_text().split()[-1]

    @property
    def log(self) -> str:
        """What the gateway has written."""
        return (self.dir / "log").read_text(errors="replace")

    def start(self) -> None:
        """Starts the gateway, and whatever of its parts isn't running."""
        self.begin()
        self.ready()

    def begin(self) -> None:
        """Starts the gateway, and doesn't wait until it is ready."""
        program = os.environ.get("SPARKGATE_PROGRAM") or str(ROOT / "target/debug/sparkgate")
        command = [program, "dev", "--listen", self._address, "--sandbox-listen", self._sandbox]
        environment = {name: value for name, value in os.environ.items() if name != "KUBECONFIG"}
        environment["SPARK_HOME"] = str(self.dir / "spark")
        with (self.dir / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [*command, "--dir", str(self.dir / "dev"), *self._options],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=environment,
            )

    def ready(self) -> None:
        """Waits until the gateway is ready."""

        def is_ready() -> bool:
            assert self._process is not None
            assert self._process.poll() is None, self.log
            try:
                return httpx.get(f"{self.url}/readyz", trust_env=False).status_code == httpx.codes.OK
            except httpx.HTTPError:
                return False

        until("the gateway is ready", is_ready)

    def kill_dash_nine(self) -> None:
        """Sends SIGKILL to the gateway. Its database, its cluster and the drivers keep running."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def signal(self, number: signal.Signals) -> None:
        """Sends a signal to the gateway."""
        assert self._process is not None
        self._process.send_signal(number)

    def stop(self) -> None:
        """Stops all parts, and deletes their files."""
        assert self._process is not None
        if self._process.poll() is not None:
            # The database and the cluster of a killed gateway are found and stopped by the next one.
            self.begin()
            self.ready()
        self._process.terminate()
        self._process.wait(60)
        shutil.rmtree(self.dir, ignore_errors=True)

    def job(self, name: str, code: str) -> str:
        """Writes an application; returns its URI."""
        path = self.jobs / f"{name}.py"
        path.write_text(code)
        return f"local://{path}"

    def _write_spark(self) -> None:
        real = Path(os.environ["SPARK_HOME"])
        home = self.dir / "spark"
        (home / "bin").mkdir(parents=True)
        for entry in [*real.iterdir(), *(real / "bin").iterdir()]:
            if entry.name not in ("bin", "spark-submit"):
                (home / entry.relative_to(real)).symlink_to(entry)
        launcher = home / "bin/spark-submit"
        launcher.write_text(LAUNCHER.format(jobs=self.jobs, spark=real))
        launcher.chmod(0o755)
