"""DAGs as Airflow's own `dag.test()` runs them, against a real gateway."""

from __future__ import annotations

import asyncio
import importlib.util
import runpy
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowSkipException
from dev import ROOT, Dev

from sparkgate import Client
from sparkgate_provider.links.sparkgate import SparkgateSubmissionLink
from sparkgate_provider.operators.sparkgate import SparkgateSubmitOperator
from sparkgate_provider.sensors.sparkgate import SparkgateSubmissionSensor
from sparkgate_provider.triggers.sparkgate import SparkgateSubmissionTrigger


@pytest.fixture
def client(dev: Dev) -> Client:
    return Client(dev.url, environ={})


@pytest.fixture
def gate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GATE", str(tmp_path / "gate"))
    return tmp_path / "gate"


def dags() -> ModuleType:
    """Reads the DAGs again: they depend on the environment."""
    path = Path(__file__).parent / "dags/sparkgate_jobs.py"
    spec = importlib.util.spec_from_file_location("sparkgate_jobs", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def run(name: str) -> tuple[str, dict[str, Any]]:
    """Runs a DAG; returns its state, and its task instances by id."""
    dag_run = getattr(dags(), name).test()
    instances = dag_run.get_task_instances()
    return str(dag_run.state), {f"{ti.task_id}{'' if ti.map_index < 0 else ti.map_index}": ti for ti in instances}


def xcom(instance: Any, key: str = "return_value") -> Any:
    return instance.xcom_pull(task_ids=instance.task_id, key=key, map_indexes=instance.map_index)


def submissions(client: Client, dag: str) -> list[Any]:
    return list(client.list(labels={"airflow-dag": dag}))[::-1]


@pytest.mark.parametrize("dag", ["finishes", "finishes_deferred"])
def test_a_job_runs(
    dev: Dev, client: Client, dag: str, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    state, tasks = run(dag)
    assert state == "success"
    (job,) = submissions(client, dag)
    result = {"submission_id": job.id, "state": "FINISHED", "exit_code": 0, "attempt": 1, "failure": None}
    assert xcom(tasks["job"]) == result
    assert xcom(tasks["job"], "submission_id") == job.id
    assert xcom(tasks["job"], SparkgateSubmissionLink().xcom_key) == f"{dev.url}/v1/submissions/{job.id}"
    assert tasks["job"].try_number == 1
    output = capfd.readouterr()
    assert "ends with 0" in caplog.text + output.out + output.err
    if dag == "finishes":
        assert job.name == "finishes manual"
        assert job.labels["team"] == "data"


def test_a_failed_job_is_submitted_again_by_each_try(client: Client) -> None:
    state, tasks = run("fails")
    assert (state, tasks["job"].try_number) == ("failed", 3)
    jobs = submissions(client, "fails")
    assert [job.state for job in jobs] == ["FAILED"] * 3


def test_a_failure_that_another_try_does_not_mend_ends_the_task(client: Client) -> None:
    state, tasks = run("fails_deferred")
    assert (state, tasks["job"].try_number, len(submissions(client, "fails_deferred"))) == ("failed", 1, 1)
    state, tasks = run("is_refused")
    assert (state, tasks["job"].try_number, len(submissions(client, "is_refused"))) == ("failed", 1, 0)


def test_sensors_see_the_end(client: Client) -> None:
    state, tasks = run("senses")
    assert state == "success"
    (job,) = submissions(client, "senses")
    assert [xcom(tasks[name])["submission_id"] for name in ("sense_here", "sense_deferred")] == [job.id] * 2
    state, tasks = run("senses_a_failure")
    assert state == "failed"
    assert [str(tasks[name].state) for name in ("hard", "soft")] == ["failed", "skipped"]
    assert tasks["hard"].try_number == 1
    # It has ended before the sensor begins.
    (job,) = submissions(client, "senses_a_failure")
    sensor = SparkgateSubmissionSensor(task_id="late", submission_id=job.wait().id, deferrable=True, soft_fail=True)
    with pytest.raises(AirflowSkipException, match="APPLICATION_ERROR"):
        sensor.execute({})


def test_each_mapped_task_has_a_submission_of_its_own(client: Client) -> None:
    state, tasks = run("maps")
    assert state == "success"
    assert {xcom(tasks[f"job{index}"])["submission_id"] for index in range(3)} == {job.id for job in submissions(client, "maps")}
    assert len(submissions(client, "maps")) == 3


def test_a_try_finds_the_submission_of_one_that_died(client: Client, gate: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tries: list[str] = []
    follow = SparkgateSubmitOperator._follow_log

    def dies_once(self: SparkgateSubmitOperator, client: Client, submission: Any) -> None:
        tries.append(submission.id)
        if len(tries) == 1:
            # As if the worker had been killed: nothing of the operator runs any more.
            raise ConnectionAbortedError("the worker died")
        gate.touch()
        follow(self, client, submission)

    monkeypatch.setattr(SparkgateSubmitOperator, "_follow_log", dies_once)
    state, tasks = run("waits")
    # Its name has the number of the try: the request differs, and is found nevertheless.
    (job,) = submissions(client, "waits")
    assert (state, tasks["job"].try_number, tries, job.name) == ("success", 2, [job.id] * 2, "job 1")


def test_a_submission_that_was_killed_with_its_task_is_submitted_again(
    client: Client, gate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    follow = SparkgateSubmitOperator._follow_log
    killed: list[str] = []

    def is_killed_once(self: SparkgateSubmitOperator, client: Client, submission: Any) -> None:
        if not killed:
            killed.append(submission.id)
            self.on_kill()
        else:
            gate.touch()
        follow(self, client, submission)

    monkeypatch.setattr(SparkgateSubmitOperator, "_follow_log", is_killed_once)
    before = {job.id for job in submissions(client, "waits")}
    state, tasks = run("waits")
    states = {job.id: job.state.value for job in submissions(client, "waits") if job.id not in before}
    assert (state, tasks["job"].try_number) == ("success", 2)
    assert sorted(states.values()) == ["FINISHED", "KILLED"]
    assert states[killed[0]] == "KILLED"


def test_a_task_that_takes_too_long_kills_its_submission(client: Client) -> None:
    state, _ = run("takes_too_long")
    assert state == "failed"
    for job in submissions(client, "takes_too_long"):
        assert job.wait().state == "KILLED"
    assert len(submissions(client, "takes_too_long")) == 2


def test_a_trigger_waits_through_a_killed_gateway_and_kills(dev: Dev, client: Client, gate: Path) -> None:
    job = client.submit(f"local://{dev.jobs}/waits.py", gate)
    other = client.submit(f"local://{dev.jobs}/waits.py", gate.with_name("never"), kill_grace=0)

    async def fired(trigger: SparkgateSubmissionTrigger) -> dict[str, Any]:
        return await anext(event.payload async for event in trigger.run())

    async def main() -> None:
        waiting = asyncio.create_task(fired(SparkgateSubmissionTrigger(job.id)))
        await asyncio.to_thread(dev.kill_dash_nine)
        await asyncio.to_thread(dev.start)
        await asyncio.to_thread(gate.touch)
        assert await waiting == {"submission_id": job.id, "status": "ended"}
        assert (await fired(SparkgateSubmissionTrigger(other.id, deadline=0)))["status"] == "timeout"
        assert (await fired(SparkgateSubmissionTrigger("driver-1")))["status"] == "error"
        await SparkgateSubmissionTrigger(other.id, kills=False).on_kill()
        assert not (await asyncio.to_thread(other.refresh)).has_ended
        await SparkgateSubmissionTrigger(other.id, kills=True).on_kill()

    asyncio.run(main())
    assert other.wait().state == "KILLED"


def test_the_dag_of_the_readme_runs(dev: Dev, client: Client) -> None:
    readme = (ROOT / "clients/airflow/README.md").read_text()
    code = readme.partition("```python\n")[2].partition("```")[0]
    code = code.replace("local:///opt/spark/examples/src/main/python/pi.py", f"local://{dev.jobs}/ends.py").replace("[10]", "[0]")
    path = Path(__file__).parent / "dags/readme.py"
    path.write_text(code.replace("2026, 1, 1)):", "2026, 1, 1)) as dag:"))
    try:
        assert str(runpy.run_path(str(path))["dag"].test().state) == "success"
    finally:
        path.unlink()
    assert [job.state for job in submissions(client, "pi_sparkgate")] == ["FINISHED"]
