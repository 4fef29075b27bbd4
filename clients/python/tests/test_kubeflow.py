"""Jobs of Kubeflow's SDK that run through a real gateway."""

from __future__ import annotations

import json
import re
import runpy
from pathlib import Path

import pytest
from dev import ROOT, Dev
from kubeflow.spark import (
    Annotations,
    FileJob,
    FuncJob,
    Labels,
    Name,
    NodeSelector,
    PodTemplateOverride,
    SparkClient,
    SparkJobStatus,
    Toleration,
)

from sparkgate import Client
from sparkgate.kubeflow import spark_client


@pytest.fixture
def spark(client: Client) -> SparkClient:
    return spark_client(client)


def greet(times: int, greeting: str) -> None:
    import pyspark

    print(*[greeting] * times, pyspark.__version__)


def test_the_example_of_the_documentation_runs(
    dev: Dev, client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (example,) = re.findall(r"```python\n(.*?)```", (ROOT / "docs/integrate/kubeflow.md").read_text(), re.DOTALL)
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
    assert "What to do: read logTail" in str(failed.value)
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
    properties = json.loads(client.request("GET", f"/v1/submissions/{submission.id}/request"))["sparkProperties"]
    expected = {"executor.instances": "2", "executor.cores": "2", "executor.memory": "1536m", "driver.memory": "600m"}
    assert {name: properties[f"spark.{name}"] for name in expected} == expected
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
    with pytest.raises(NotImplementedError, match="batch jobs"):
        spark.connect()
    assert spark.list_sessions() == []
