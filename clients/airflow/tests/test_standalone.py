"""A real Airflow: scheduler, workers of the LocalExecutor, triggerer, dag processor and API server. Its parts are killed."""

from __future__ import annotations

import os
import signal
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest
from dev import Dev
from dev import until as until_seconds

from sparkgate import Client

#: Airflow is seven processes, which take a while on a small machine.
PATIENCE = 600.0


def until(what: str, done: Callable[[], bool]) -> None:
    """Waits for a condition."""
    until_seconds(what, done, PATIENCE, 0.5)


PROGRAM = Path(sys.executable).with_name("airflow")


class Airflow:
    """A running Airflow."""

    def __init__(self, home: Path, gate: Path) -> None:
        self.home = home
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", 0))
            port = listener.getsockname()[1]
        self.environ = {
            **os.environ,
            "PATH": f"{PROGRAM.parent}:{os.environ['PATH']}",
            "GATE": str(gate),
            "AIRFLOW__API__PORT": str(port),
            "AIRFLOW__API__WORKERS": "1",
            "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"http://127.0.0.1:{port}/execution/",
            "AIRFLOW__CORE__EXECUTOR": "LocalExecutor",
            "AIRFLOW__CORE__PARALLELISM": "2",
            "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS": "True",
            "AIRFLOW__CORE__DAGBAG_IMPORT_TIMEOUT": "300",
            "AIRFLOW__WORKERS__EXECUTION_API_TIMEOUT": "60",
            "AIRFLOW__DAG_PROCESSOR__DAG_FILE_PROCESSOR_TIMEOUT": "300",
            # A worker that is gone is noticed soon.
            "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT": "30",
            "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT_DETECTION_INTERVAL": "5",
            "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_SEC": "5",
        }
        self.log = home / "standalone.log"
        with self.log.open("wb") as log:
            self._process = subprocess.Popen([PROGRAM, "standalone"], stdout=log, stderr=log, env=self.environ)

    def run(self, *command: str) -> None:
        done = subprocess.run([PROGRAM, *command], env=self.environ, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr

    def is_known(self, dag: str) -> bool:
        assert self._process.poll() is None, self.log.read_text(errors="replace")[-4000:]
        return bool(self._query("SELECT 1 FROM serialized_dag WHERE dag_id = ?", dag))

    def task(self, dag: str) -> tuple[str | None, int]:
        """Returns the state and the try of a DAG's newest task."""
        rows = self._query("SELECT state, try_number FROM task_instance WHERE dag_id = ? ORDER BY rowid DESC LIMIT 1", dag)
        return rows[0] if rows else (None, 0)

    def _query(self, statement: str, dag: str) -> list[tuple[str | None, int]]:
        database = sqlite3.connect(f"file:{self.home}/airflow.db?mode=ro", uri=True, timeout=30)
        try:
            return database.execute(statement, (dag,)).fetchall()
        finally:
            database.close()

    def kill_the_workers(self) -> None:
        """Sends SIGKILL to the processes that run tasks, and to those that supervise them."""
        parts = psutil.Process(self._process.pid).children(recursive=True)
        workers = [part for part in parts if "LocalExecutor" in " ".join(part.cmdline()) and "manager" not in part.name()]
        busy = [worker for worker in workers if worker.children()]
        assert busy, [part.cmdline() for part in parts]
        for worker in busy:
            for process in [worker, *worker.children(recursive=True)]:
                process.kill()

    def stop(self) -> None:
        parts = psutil.Process(self._process.pid).children(recursive=True)
        self._process.send_signal(signal.SIGINT)
        try:
            self._process.wait(60)
        except subprocess.TimeoutExpired:
            self._process.kill()
        for part in parts:
            if part.is_running():
                part.kill()


@pytest.fixture(scope="module")
def gate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("gates") / "gate"


@pytest.fixture(scope="module")
def airflow(dev: Dev, airflow_home: Path, gate: Path) -> Iterator[Airflow]:
    airflow = Airflow(airflow_home, gate)
    try:
        until("Airflow has read the DAGs", lambda: airflow.is_known("waits") and airflow.is_known("waits_deferred"))
        yield airflow
    finally:
        airflow.stop()


@pytest.fixture
def client(dev: Dev) -> Client:
    return Client(dev.url, environ={})


def ids(client: Client, dag: str, state: str | None = None) -> set[str]:
    return {job.id for job in client.list(labels={"airflow-dag": dag}, state=state)}


def test_a_submission_outlives_the_worker_that_follows_it(airflow: Airflow, client: Client, gate: Path) -> None:
    before = ids(client, "waits")
    airflow.run("dags", "trigger", "waits")
    until("the job runs", lambda: bool(ids(client, "waits", "RUNNING") - before))
    (job,) = ids(client, "waits") - before
    state, tries = airflow.task("waits")
    assert state == "running"
    airflow.kill_the_workers()
    until("another worker runs the task", lambda: airflow.task("waits") == ("running", tries + 1))
    gate.touch()
    until("the task has ended", lambda: airflow.task("waits")[0] in ("success", "failed"))
    assert airflow.task("waits") == ("success", tries + 1)
    assert ids(client, "waits") - before == {job}
    assert client.get(job).succeeded
    gate.unlink()


def test_a_deferred_task_outlives_the_gateway_and_is_killed_when_it_is_cleared(
    airflow: Airflow, dev: Dev, client: Client, gate: Path
) -> None:
    before = ids(client, "waits_deferred")
    airflow.run("dags", "trigger", "waits_deferred")
    until("the task is deferred", lambda: airflow.task("waits_deferred")[0] == "deferred")
    (first,) = ids(client, "waits_deferred") - before
    airflow.run("tasks", "clear", "--yes", "waits_deferred")
    until("the job is killed with its task", lambda: client.get(first).has_ended)
    assert client.get(first).state == "KILLED"
    until("the task submits again", lambda: len(ids(client, "waits_deferred") - before) == 2)
    until("the task is deferred", lambda: airflow.task("waits_deferred")[0] == "deferred")
    dev.kill_dash_nine()
    dev.start()
    gate.touch()
    until("the task has ended", lambda: airflow.task("waits_deferred")[0] in ("success", "failed"))
    assert airflow.task("waits_deferred")[0] == "success"
    (second,) = ids(client, "waits_deferred", "FINISHED") - before
    assert ids(client, "waits_deferred") - before == {first, second}
