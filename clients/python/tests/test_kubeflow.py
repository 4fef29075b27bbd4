"""Jobs and sessions of Kubeflow's SDK that run through a real gateway."""

from __future__ import annotations

import json
import re
import runpy
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pytest
from dev import ROOT, Dev
from kubeflow.spark import (
    Annotations,
    Driver,
    Executor,
    FileJob,
    FuncJob,
    Labels,
    Name,
    NodeSelector,
    PodTemplateOverride,
    SparkClient,
    SparkConnectState,
    SparkJobStatus,
    Toleration,
)
from pyspark.sql import SparkSession
from server import SUBMISSION, Handler, Server

from sparkgate import Client
from sparkgate.kubeflow import spark_client


@pytest.fixture
def spark(client: Client) -> SparkClient:
    return spark_client(client)


#: Executors that a driver starts in its own process. The sandbox's drivers have no others.
LOCAL = {"spark.kubernetes.driver.master": "local[2]", "spark.driver.memory": "1g"}


@pytest.fixture
def connected(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Where PySpark connects to. Its client needs packages that aren't installed here: tests/clients/connect.rs uses it."""
    urls = list[str]()

    def create(builder: SparkSession.Builder) -> MagicMock:
        urls.append(builder._options["spark.remote"])
        return MagicMock()

    monkeypatch.setattr(SparkSession.Builder, "create", create)
    return urls


def properties(client: Client, id: str) -> dict[str, str]:
    """Returns the Spark properties of a request."""
    return dict(json.loads(client.request("GET", f"/v1/submissions/{id}/request"))["sparkProperties"])


def greet(times: int, greeting: str) -> None:
    import pyspark

    print(*[greeting] * times, pyspark.__version__)


def test_the_example_of_the_documentation_runs(
    dev: Dev, client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    example, _ = re.findall(r"```python\n(.*?)```", (ROOT / "docs/integrate/kubeflow.md").read_text(), re.DOTALL)
    # A Spark context would take longer.
    (tmp_path / "example.py").write_text(example.replace("SparkSession.builder.getOrCreate().range(rows).count()", "rows"))
    monkeypatch.setenv("SPARKGATE_URL", dev.url)
    runpy.run_path(str(tmp_path / "example.py"))
    assert "1000 rows\n" in capsys.readouterr().out
    (submission,) = client.list(labels={"kubeflow-sdk": "spark"}, name="spark-job-", limit=1)
    job = spark_client(client).get_job(submission.name)
    assert (job.status, job.namespace) == (SparkJobStatus.COMPLETED, "default")
    assert (job.driver_pod_name, job.creation_timestamp) == (submission.driver.pod, submission.created_at)


def test_a_job_is_followed_killed_and_listed(spark: SparkClient, waits: str, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    gate.with_suffix(".more").touch()
    job = FileJob(file_source=waits, args=[str(gate), "4"])
    assert spark.submit_job(job, options=[Name("waits"), Labels({"team": "data"})]) == "waits"
    assert spark.wait_for_job_status("waits", {SparkJobStatus.RUNNING}).status == SparkJobStatus.RUNNING
    with pytest.raises(TimeoutError):
        spark.wait_for_job_status("waits", timeout=2, polling_interval=1)
    with pytest.raises(RuntimeError, match="unique"):
        spark.submit_job(job, options=[Name("waits")])
    lines = spark.get_job_logs("waits", follow=True)
    assert [next(lines) for _ in range(4)] == ["line 0", "line 1", "line 2", "line 3"]
    assert [job.name for job in spark.list_jobs({SparkJobStatus.RUNNING})] == ["waits"]
    spark.delete_job("waits")
    with pytest.raises(RuntimeError, match=r"KILLED_ON_REQUEST \(cancelled\)"):
        spark.wait_for_job_status("waits")
    assert spark.get_job("waits").status == SparkJobStatus.FAILED
    assert list(lines) == []
    # Its name is free again.
    gate.touch()
    spark.submit_job(job, options=[Name("waits")])
    assert spark.wait_for_job_status("waits").status == SparkJobStatus.COMPLETED
    with pytest.raises(RuntimeError, match="can't become Running"):
        spark.wait_for_job_status("waits", {SparkJobStatus.RUNNING})
    assert len([job for job in spark.list_jobs() if job.name == "waits"]) == 2


def test_a_failure_says_what_to_do(spark: SparkClient, tmp_path: Path) -> None:
    script = tmp_path / "fails.py"
    script.write_text("import sys\nsys.exit(3)\n")
    name = spark.submit_job(FileJob(file_source=str(script)))
    with pytest.raises(RuntimeError, match="APPLICATION_ERROR") as failed:
        spark.wait_for_job_status(name, timeout=180)
    assert re.search("What to do: .*Read logTail", str(failed.value))
    assert spark.wait_for_job_status(name, {SparkJobStatus.FAILED}).status == SparkJobStatus.FAILED


def test_options_reach_the_driver(spark: SparkClient, client: Client, ends: str) -> None:
    options = [
        Name("options"),
        Annotations({"purpose": "test"}),
        NodeSelector({"disk": "ssd"}),
        Toleration(key="spark", value="yes"),
    ]
    spark.submit_job(
        FileJob(file_source=ends, args=["0"]),
        num_executors=2,
        resources_per_executor={"cpu": "1500m", "memory": "1.5Gi"},
        options=options,
        spark_conf={"spark.driver.memory": "600m"},
    )
    (submission,) = client.list(labels={"kubeflow-job": "options"})
    asked = properties(client, submission.id)
    expected = {"executor.instances": "2", "executor.cores": "2", "executor.memory": "1536m", "driver.memory": "600m"}
    assert {name: asked[f"spark.{name}"] for name in expected} == expected
    (pod,) = [item for item in submission.manifest().items if item["kind"] == "Pod"]
    assert pod["metadata"]["annotations"]["purpose"] == "test"
    assert pod["spec"]["nodeSelector"] == {"disk": "ssd"}
    assert {"key": "spark", "operator": "Equal", "value": "yes", "effect": "NoSchedule"} in pod["spec"]["tolerations"]


def test_what_is_not_supported_is_refused(spark: SparkClient, ends: str) -> None:
    job = FileJob(file_source=ends, args=["0"])
    with pytest.raises(ValueError, match="PodTemplateOverride is not supported"):
        spark.submit_job(job, options=[PodTemplateOverride("driver", {})])
    with pytest.raises(ValueError, match="nvidia"):
        spark.submit_job(job, resources_per_executor={"nvidia.com/gpu": "1"})
    with pytest.raises(ValueError, match="missing a required argument: 'greeting'"):
        spark.submit_job(FuncJob(func=greet, func_args={"times": 1}))
    with pytest.raises(ValueError, match="def"):
        spark.submit_job(FuncJob(func=lambda: None))
    with pytest.raises(RuntimeError, match="there is no Spark job unknown"):
        spark.get_job("unknown")
    with pytest.raises(ValueError, match="PodTemplateOverride is not supported"):
        spark.connect(options=[PodTemplateOverride("driver", {})])
    with pytest.raises(ValueError, match="resources of the driver: nvidia"):
        spark.connect(driver=Driver(resources={"nvidia.com/gpu": "1"}))
    for act in (spark.get_session, spark.delete_session, spark.get_session_logs):
        with pytest.raises(RuntimeError, match="there is no session unknown"):
            act("unknown")


def test_the_session_of_the_documentation_opens(spark: SparkClient, client: Client, connected: list[str]) -> None:
    _, example = re.findall(r"```python\n(.*?)```", (ROOT / "docs/integrate/kubeflow.md").read_text(), re.DOTALL)
    exec(compile(example.replace("    num_executors=2,", f"    spark_conf={LOCAL},"), "example", "exec"), {"spark": spark})
    assert (spark.list_sessions(), len(connected)) == ([], 1)
    ended = spark.get_session("analysis")
    assert (ended.state, ended.namespace) == (SparkConnectState.FAILED, "default")
    (submission,) = client.list(name="analysis")
    assert properties(client, submission.id)["spark.executor.memory"] == "4096m"


def test_a_session_is_opened_used_again_and_deleted(spark: SparkClient, client: Client, connected: list[str]) -> None:
    options = [
        Name("mine"),
        Labels({"team": "data"}),
        Annotations({"purpose": "test"}),
        NodeSelector({"disk": "ssd"}),
        Toleration(key="spark", value="yes"),
    ]

    def connect(timeout: int) -> None:
        spark.connect(
            num_executors=1,
            resources_per_executor={"cpu": "1"},
            spark_conf=LOCAL,
            driver=Driver("spark:test", {"cpu": "1500m", "memory": "1Gi"}, "-Dof=driver", "spark"),
            executor=Executor(2, {"memory": "2Gi"}, "-Dof=executor"),
            options=options,
            timeout=timeout,
        )

    with pytest.raises(TimeoutError, match="isn't ready after 0 seconds"):
        connect(0)
    assert connected == []
    (opening,) = spark.list_sessions()
    assert (opening.name, opening.state) == ("mine", SparkConnectState.PROVISIONING)
    connect(180)
    connect(180)
    session = spark.get_session("mine")
    (submission,) = client.list(labels={"team": "data"}, name="mine")
    assert [f"x-sparkgate-session={submission.id}" in url for url in connected] == [True, True]
    assert (session.state, session.namespace) == (SparkConnectState.READY, "default")
    assert (session.driver_pod_name, session.creation_timestamp) == (submission.driver.pod, submission.created_at)
    assert spark.list_sessions() == [session]

    asked = properties(client, submission.id)
    expected = {
        "executor.instances": "2",
        "executor.memory": "2048m",
        "executor.extraJavaOptions": "-Dof=executor",
        "driver.cores": "2",
        "driver.memory": "1g",
        "driver.extraJavaOptions": "-Dof=driver",
        "kubernetes.container.image": "spark:test",
    }
    assert {name: asked[f"spark.{name}"] for name in expected} == expected
    assert "spark.executor.cores" not in asked
    (pod,) = [item for item in submission.manifest().items if item["kind"] == "Pod"]
    assert pod["metadata"]["annotations"]["purpose"] == "test"
    assert (pod["spec"]["serviceAccountName"], pod["spec"]["nodeSelector"]) == ("spark", {"disk": "ssd"})
    assert {"key": "spark", "operator": "Equal", "value": "yes", "effect": "NoSchedule"} in pod["spec"]["tolerations"]

    spark.delete_session("mine")
    assert spark.list_sessions() == []
    assert spark.get_session("mine").state == SparkConnectState.FAILED
    assert any("Spark Connect server started" in line for line in spark.get_session_logs("mine", follow=True))


def test_a_session_that_fails_says_why(spark: SparkClient, connected: list[str]) -> None:
    with pytest.raises(RuntimeError, match=r"opening the session spark-connect-[0-9a-f]{8}: .* has ended: .*FAILED"):
        spark.connect(spark_conf=LOCAL, driver=Driver(java_options="-javaagent:missing.jar"))
    with pytest.raises(RuntimeError, match="is no name of a session"):
        spark.connect(options=[Name("not a name")])
    assert connected == []


def test_sessions_of_others_and_shared_ones_are_left_out() -> None:
    def session(number: int, principal: str, namespace: str = "default", **fields: Any) -> dict[str, Any]:
        created = {"createdAt": "2026-01-02T03:04:05Z", "sparkVersion": "4.3.0", "idleTimeoutSeconds": 1800}
        places = {"tenant": "analytics", "principal": principal, "namespace": namespace}
        return {"id": f"driver-{number}", "name": "mine", "state": "READY", "shared": False, **created, **places, **fields}

    sessions = [
        session(5, "corp:bob"),
        session(4, "corp:alice", shared=True),
        session(3, "corp:alice", "other"),
        session(2, "corp:alice"),
        session(1, "corp:alice", state="ENDED", name="over"),
    ]

    def answer(request: Handler) -> None:
        path, _, query = request.path.partition("?")
        match request.command, path.removeprefix("/v1/"):
            case "GET", "me":
                request.reply(200, {"subject": "corp:alice", "groups": [], "tenants": []})
            case "GET", "sessions":
                request.reply(200, {"items": [one for one in sessions if "all=true" in query or one["state"] != "ENDED"]})
            case "GET", "submissions/driver-2":
                request.reply(200, {**SUBMISSION, "id": "driver-2"})
            case "DELETE", _:
                request.reply(202, sessions[0])
            case _:
                request.problem(404, "not-found")

    server = Server(answer)
    with Client(server.url, environ={}) as client:
        spark = spark_client(client, namespace="default")
        assert [(one.name, one.driver_pod_name) for one in spark.list_sessions()] == [("mine", "pi-driver")]
        spark.delete_session("mine")
        spark.delete_session("over")
    server.shutdown()
    deleted = [request.path for request in server.requests if request.command == "DELETE"]
    assert deleted == ["/v1/sessions/driver-2", "/v1/sessions/driver-1"]
