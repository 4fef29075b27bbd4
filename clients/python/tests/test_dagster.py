"""Assets of a real Dagster that run as jobs of a real gateway."""

import json
import os
import re
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dagster_pipes
import pytest
from dagster import (
    AssetExecutionContext,
    DagsterInstance,
    ExecuteInProcessResult,
    Failure,
    MaterializeResult,
    OpExecutionContext,
    ReexecutionOptions,
    RetryPolicy,
    asset,
    build_asset_context,
    execute_job,
    in_process_executor,
    job,
    materialize,
    op,
    reconstructable,
)
from dev import ROOT, Dev, until

from sparkgate import Client, GatewayUnreachable, MaxRetries, Submission
from sparkgate.dagster import PipesSparkgateClient, PipesSparkgateLogMessageReader


@op
def loads(context: OpExecutionContext) -> None:
    # Dagster imports this file anew for an execution, so its settings come from the environment.
    PipesSparkgateClient().run(context=context, app=os.environ["JOB"], args=["0"])
    if "FAILS" in os.environ:
        raise Failure("after the job")


@job(executor_def=in_process_executor)
def nightly() -> None:
    loads()


#: The beginning of an application that runs without Spark.
PIPES = f"""
import pathlib, sys, time
sys.path.insert(0, {str(Path(dagster_pipes.__file__).parents[1])!r})
from dagster_pipes import open_dagster_pipes
"""


@pytest.fixture
def instance() -> Iterator[DagsterInstance]:
    with DagsterInstance.ephemeral() as instance:
        yield instance


@pytest.fixture
def pipes(dev: Dev) -> PipesSparkgateClient:
    return PipesSparkgateClient(lambda: Client(dev.url, environ={}))


@pytest.fixture(scope="session")
def reports(dev: Dev) -> str:
    """An application that reports its attempt, and ends with the exit code of its first argument.

    If it has a second argument, it waits for this file.
    """
    return dev.job(
        "reports",
        PIPES
        + """
with open_dagster_pipes() as pipes:
    print("a line of the log", flush=True)
    pipes.log.info("a message")
    pipes.report_asset_materialization(metadata={"retry": pipes.retry_number, "extra": str(pipes.extras.get("extra"))})
    pipes.report_custom_message(pipes.extras.get("extra"))
    while len(sys.argv) > 2 and not pathlib.Path(sys.argv[2]).exists():
        time.sleep(0.05)
    if sys.argv[1] != "0":
        raise RuntimeError("no luck")
""",
    )


def run_asset(
    instance: DagsterInstance, pipes: PipesSparkgateClient, app: str, *args: object, retries: int = 0, **options: Any
) -> ExecuteInProcessResult:
    @asset(retry_policy=RetryPolicy(max_retries=retries))
    def trips(context: AssetExecutionContext) -> MaterializeResult:
        return pipes.run(context=context, app=app, args=[str(arg) for arg in args], **options).get_materialize_result()

    return materialize([trips], instance=instance, raise_on_error=False)


def submissions(client: Client, run_id: str) -> list[Submission]:
    """Returns the submissions of a run, the oldest first."""
    return list(client.list(labels={"dagster-run": run_id}))[::-1]


def metadata_of(result: ExecuteInProcessResult) -> dict[str, Any]:
    (event,) = result.asset_materializations_for_node("trips")
    return {name: value.value for name, value in event.metadata.items()}


def failure_of(result: ExecuteInProcessResult) -> tuple[str, dict[str, Any]]:
    failure = result.failure_data_for_node("trips")
    assert failure is not None
    assert failure.user_failure_data is not None
    return failure.user_failure_data.description or "", {
        name: value.value for name, value in failure.user_failure_data.metadata.items()
    }


def messages_of(instance: DagsterInstance, run_id: str) -> str:
    return "\n".join(entry.user_message for entry in instance.all_logs(run_id))


def test_the_example_of_the_documentation_runs(
    instance: DagsterInstance,
    dev: Dev,
    client: Client,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    assets, application = re.findall(r"```python\n(.*?)```", (ROOT / "docs/integrate/dagster.md").read_text(), re.DOTALL)
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs/trips.py").write_text("print('a line of the application')\n" + application)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SPARKGATE_URL", dev.url)
    code: dict[str, Any] = {}
    exec(compile(assets, "assets.py", "exec"), code)
    result = code["defs"].resolve_implicit_global_asset_job_def().execute_in_process(instance=instance)
    (submission,) = submissions(client, result.run_id)
    metadata = metadata_of(result)
    assert (metadata["rows"], metadata["Sparkgate submission"]) == (1000, submission.id)
    assert metadata["Sparkgate console"] == f"{dev.url}/console/submissions/{submission.id}"
    assert [check.passed for check in result.get_asset_check_evaluations()] == [True]
    assert "counted 1000 rows of nl" in messages_of(instance, result.run_id)
    assert (submission.name, submission.labels["dagster-step"]) == ("trips", "trips")
    out = capfd.readouterr().out
    assert "a line of the application\n" in out
    assert "__dagster_pipes_version" not in out


def test_options_and_files_reach_the_gateway(
    instance: DagsterInstance, dev: Dev, client: Client, reports: str, tmp_path: Path
) -> None:
    pipes = PipesSparkgateClient(
        lambda: Client(dev.url, environ={}), upload_dagster_pipes=True, console_url="https://spark.example.org/"
    )
    (tmp_path / "helper.py").touch()
    custom: list[Any] = []

    @asset
    def trips(context: AssetExecutionContext, pipes: PipesSparkgateClient) -> MaterializeResult:
        done = pipes.run(
            context=context,
            app=reports,
            args=["0"],
            py_files=[tmp_path / "helper.py", "local:///opt/app/more.py"],
            extras={"extra": {"day": 7}},
            name="trips of today",
            conf={"spark.submit.pyFiles": "local:///opt/app/first.py"},
            env={"REGION": "eu"},
            labels={"team": "data"},
        )
        custom.extend(done.get_custom_messages())
        return done.get_materialize_result()

    result = materialize([trips], instance=instance, resources={"pipes": pipes})
    (submission,) = submissions(client, result.run_id)
    assert (submission.name, submission.labels["team"], custom) == ("trips of today", "data", [{"day": 7}])
    assert metadata_of(result)["Sparkgate console"] == f"https://spark.example.org/console/submissions/{submission.id}"
    request = json.loads(client.request("GET", f"/v1/submissions/{submission.id}/request"))
    assert request["environmentVariables"]["REGION"] == "eu"
    files = request["sparkProperties"]["spark.submit.pyFiles"].split(",")
    assert [file.rpartition("/")[2] for file in files] == ["first.py", "helper.py", "more.py", "dagster_pipes.zip"]
    assert [file.partition(":")[0] for file in files] == ["local", "sparkgate-file", "local", "sparkgate-file"]


def test_a_failure_has_its_code_and_what_to_do(
    instance: DagsterInstance, pipes: PipesSparkgateClient, client: Client, reports: str
) -> None:
    result = run_asset(instance, pipes, reports, 1)
    (submission,) = submissions(client, result.run_id)
    description, metadata = failure_of(result)
    assert description.startswith(f"{submission.id} is FAILED: APPLICATION_ERROR (application): ")
    assert re.search("What to do: .*Read logTail", description)
    assert (metadata["Failure"], metadata["Failure class"], metadata["Exit code"]) == ("APPLICATION_ERROR", "application", 1)
    assert "no luck" in metadata["End of the log"]
    assert metadata["Sparkgate console"].endswith(f"/console/submissions/{submission.id}")
    # The application's exception, which Pipes reports.
    assert "external process pipes closed with exception" in messages_of(instance, result.run_id)


def test_a_retry_submits_again_unless_the_failure_is_final(
    instance: DagsterInstance, dev: Dev, pipes: PipesSparkgateClient, client: Client, reports: str
) -> None:
    result = run_asset(instance, pipes, reports, 1, retries=1)
    assert [submission.state.value for submission in submissions(client, result.run_id)] == ["FAILED", "FAILED"]
    pipes = PipesSparkgateClient(lambda: Client(dev.url, environ={}), no_retry_on=["APPLICATION_ERROR"])
    result = run_asset(instance, pipes, reports, 1, retries=1)
    assert len(submissions(client, result.run_id)) == 1


def test_a_refusal_is_final(instance: DagsterInstance, pipes: PipesSparkgateClient, client: Client, reports: str) -> None:
    result = run_asset(instance, pipes, reports, 0, retries=1, conf={"spark.driver.memory": "much"})
    description, _ = failure_of(result)
    assert "spark.driver.memory" in description
    assert "STEP_UP_FOR_RETRY" not in {event.event_type_value for event in result.all_events}
    assert submissions(client, result.run_id) == []


def test_a_retry_follows_the_submission_that_still_runs(
    instance: DagsterInstance,
    pipes: PipesSparkgateClient,
    client: Client,
    reports: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    follow = PipesSparkgateLogMessageReader.follow
    tries = []

    def fails_first(*arguments: Any) -> None:
        tries.append(1)
        if len(tries) == 1:
            raise GatewayUnreachable("away")
        (tmp_path / "gate").touch()
        follow(*arguments)

    monkeypatch.setattr(PipesSparkgateLogMessageReader, "follow", fails_first)
    result = run_asset(instance, pipes, reports, 0, tmp_path / "gate", retries=1)
    assert result.success
    assert (len(tries), len(submissions(client, result.run_id))) == (2, 1)
    # The context is that of the first try, which submitted it.
    assert metadata_of(result)["retry"] == 0
    assert "following the submission of an earlier try" in messages_of(instance, result.run_id)


def test_results_of_an_attempt_that_was_repeated_do_not_count(
    instance: DagsterInstance, dev: Dev, pipes: PipesSparkgateClient, client: Client, tmp_path: Path
) -> None:
    app = dev.job(
        "second",
        PIPES
        + """
mark = pathlib.Path(sys.argv[1])
with open_dagster_pipes() as pipes:
    pipes.report_asset_materialization(metadata={"is_second": mark.exists()})
    if not mark.exists():
        mark.touch()
        sys.exit(1)
""",
    )

    @asset
    def trips(context: AssetExecutionContext) -> MaterializeResult:
        done = pipes.run(context=context, app=app, args=[tmp_path / "mark"], retries=MaxRetries(infrastructure=0, application=1))
        return done.get_materialize_result()

    result = materialize([trips], instance=instance)
    (submission,) = submissions(client, result.run_id)
    assert (submission.attempt, metadata_of(result)["is_second"]) == (2, True)


def test_an_execution_from_a_failure_does_not_run_a_job_that_succeeded(
    dev: Dev, client: Client, ends: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {"SPARKGATE_URL": dev.url, "JOB": ends, "FAILS": "yes"}.items():
        monkeypatch.setenv(name, value)
    with DagsterInstance.local_temp(str(tmp_path)) as instance:
        failed = execute_job(reconstructable(nightly), instance=instance)
        (submission,) = submissions(client, failed.run_id)
        assert (failed.success, submission.succeeded) == (False, True)
        monkeypatch.delenv("FAILS")
        options = ReexecutionOptions.from_failure(failed.run_id, instance)
        # The tag that the webserver and the daemon set.
        tags = {"dagster/is_resume_retry": "true"}
        again = execute_job(reconstructable(nightly), instance=instance, tags=tags, reexecution_options=options)
        assert (again.success, submissions(client, again.run_id)) == (True, [])
        # An execution of all steps is meant to run them.
        anew = execute_job(
            reconstructable(nightly), instance=instance, reexecution_options=ReexecutionOptions(parent_run_id=failed.run_id)
        )
        assert (anew.success, len(submissions(client, anew.run_id))) == (True, 1)


@pytest.mark.parametrize("is_forwarded", [True, False])
def test_a_run_that_is_interrupted_kills_its_submission(
    instance: DagsterInstance, dev: Dev, client: Client, reports: str, tmp_path: Path, is_forwarded: bool
) -> None:
    pipes = PipesSparkgateClient(lambda: Client(dev.url, environ={}), forward_termination=is_forwarded)
    label = {"interrupted": str(is_forwarded)}

    def interrupt() -> None:
        until("the application runs", lambda: any(found.state == "RUNNING" for found in client.list(labels=label)))
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    result = run_asset(instance, pipes, reports, 0, tmp_path / "gate", labels=label, kill_grace=0)
    thread.join()
    assert not result.success
    (submission,) = client.list(labels=label)
    if not is_forwarded:
        assert submission.state == "RUNNING"
        (tmp_path / "gate").touch()
    assert submission.wait().state == ("KILLED" if is_forwarded else "FINISHED")


def test_an_asset_that_is_called_as_a_function_runs_its_application(pipes: PipesSparkgateClient, reports: str) -> None:
    @asset
    def trips(context: AssetExecutionContext) -> MaterializeResult:
        return pipes.run(context=context, app=reports, args=["0"], extras={"extra": "more"}).get_materialize_result()

    result = trips(build_asset_context())
    assert isinstance(result, MaterializeResult)
    assert result.metadata is not None
    assert result.metadata["extra"].value == "more"
