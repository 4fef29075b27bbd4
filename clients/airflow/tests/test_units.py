"""What needs no gateway."""

from __future__ import annotations

import json
from datetime import datetime, timezone
from importlib.resources import files
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.models.connection import Connection
from airflow.providers_manager import ProvidersManager
from airflow.sdk.exceptions import AirflowException, AirflowFailException

from sparkgate import ApiError, Denied, GatewayUnreachable, NameTaken, Submission, models
from sparkgate_provider import outcome
from sparkgate_provider.get_provider_info import get_provider_info
from sparkgate_provider.hooks.sparkgate import SparkgateHook, url_of
from sparkgate_provider.keys import key_of, labels_of
from sparkgate_provider.triggers.sparkgate import SparkgateSubmissionTrigger


def test_airflow_knows_the_provider() -> None:
    import jsonschema

    schema = json.loads(files("airflow").joinpath("provider_info.schema.json").read_text())
    jsonschema.validate(get_provider_info(), schema)
    manager = ProvidersManager()
    assert "airflow-provider-sparkgate" in manager.providers
    hook = manager.hooks["sparkgate"]
    assert hook is not None
    assert (hook.hook_name, hook.connection_id_attribute_name) == ("Sparkgate", "sparkgate_conn_id")
    assert "extra__sparkgate__ca_file" in manager.connection_form_widgets
    assert manager.field_behaviours["sparkgate"]["relabeling"]["password"] == "Token"
    assert "sparkgate_provider.links.sparkgate.SparkgateSubmissionLink" in manager.extra_links_class_names


@pytest.mark.parametrize(
    ("connection", "url"),
    [
        ({"host": "https://gate.example/spark"}, "https://gate.example/spark"),
        ({"host": "gate.example", "port": 6066}, "http://gate.example:6066"),
        ({"host": "gate.example", "schema": "https"}, "https://gate.example"),
        ({"host": "::1", "port": 6066}, "http://[::1]:6066"),
        ({"uri": "sparkgate://:t0ken@gate.example:443/https"}, "https://gate.example:443"),
    ],
)
def test_a_connection_names_the_url(connection: dict[str, Any], url: str) -> None:
    connection = connection if "uri" in connection else {"conn_type": "sparkgate", **connection}
    assert url_of(Connection(conn_id="c", **connection)) == url


def test_the_hook_sends_the_token_over_tls_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARKGATE_TOKEN", "of-the-worker")
    monkeypatch.setenv("AIRFLOW_CONN_TLS", '{"conn_type": "sparkgate", "host": "https://gate.example", "password": "s3cret"}')
    monkeypatch.setenv("AIRFLOW_CONN_PLAIN", '{"conn_type": "sparkgate", "host": "gate.example", "password": "s3cret"}')
    monkeypatch.setenv("AIRFLOW_CONN_NONE", '{"conn_type": "sparkgate", "host": "gate.example"}')
    monkeypatch.setenv("AIRFLOW_CONN_EMPTY", '{"conn_type": "sparkgate"}')
    token = SparkgateHook("tls").get_conn()._settings.token
    assert token is not None
    assert token.current() == "s3cret"
    assert SparkgateHook("none").get_conn()._settings.token is None
    is_fine, says = SparkgateHook("plain").test_connection()
    assert not is_fine
    assert "anyone on the way could read it" in says
    assert "has no host" in SparkgateHook("empty").test_connection()[1]


def context(**of_ti: Any) -> Any:
    ti = {"dag_id": "etl", "task_id": "job", "run_id": "manual__2026", "map_index": -1, "max_tries": 2, "try_number": 1}
    start = datetime(2026, 1, 2, tzinfo=timezone.utc)
    return {"ti": SimpleNamespace(**{**ti, **of_ti}), "dag_run": SimpleNamespace(start_date=start)}


def test_a_key_is_that_of_the_task_instance_in_all_tries() -> None:
    key = key_of(context())
    assert key == "airflow/etl/job/manual__2026/-1/1767312000.000000/2"
    assert key_of(context(try_number=2)) == key
    for other in ({"map_index": 0}, {"run_id": "x"}, {"task_id": "x"}, {"dag_id": "x"}, {"max_tries": 3}):
        assert key_of(context(**other)) != key
    another_start = context()
    another_start["dag_run"].start_date = datetime(2026, 1, 2, 0, 0, 0, 1, tzinfo=timezone.utc)
    assert key_of(another_start) != key
    for long in ("x" * 250, "größe"):
        hashed = key_of(context(dag_id=long))
        assert hashed.isascii()
        assert len(hashed) < 100
    assert labels_of(context(run_id="manual__2026-01-02T03:04:05+00:00", task_id="g.größe-"))["airflow-run"].endswith("05_00_00")
    assert labels_of(context(task_id="-größe-"))["airflow-task"] == "gr__e"


def submission(state: str, **failure: Any) -> Submission:
    document = models.Submission.model_construct(
        id="driver-1",
        state=models.SubmissionState(state),
        exit_code=None,
        attempt=1,
        failure=models.Why.model_validate({"message": "m", **failure}) if failure else None,
    )
    return document  # type: ignore[return-value]


@pytest.mark.parametrize(
    ("code", "class_", "is_final"),
    [
        ("APPLICATION_ERROR", "application", False),
        ("OUT_OF_MEMORY", "application", False),
        ("EVICTED", "infrastructure", False),
        ("QUOTA_EXCEEDED", "capacity", False),
        ("RUN_TIMEOUT", "timeout", False),
        ("REFUSED", "configuration", True),
        ("IMAGE_PULL", "image", True),
        ("KILLED_ON_REQUEST", "cancelled", True),
        ("SUN_EXPLODED", "astronomy", False),
    ],
)
def test_the_class_of_a_failure_says_whether_another_try_may_help(code: str, class_: str, is_final: bool) -> None:
    error = outcome.failed(submission("FAILED", code=code, **{"class": class_}), outcome.NO_RETRY_ON)
    assert isinstance(error, AirflowFailException) == is_final
    assert f"{code} ({class_}): m" in str(error)
    named = outcome.failed(submission("FAILED", code=code, **{"class": class_}), [code])
    assert isinstance(named, AirflowFailException)


def test_a_refusal_is_final_and_an_absence_is_not() -> None:
    def problem(kind: type[ApiError], status: int) -> ApiError:
        return kind(status, {"title": "t"}, request_id=None, retryable=False)

    assert isinstance(outcome.refused(problem(Denied, 403)), AirflowFailException)
    for error in (GatewayUnreachable("away"), problem(NameTaken, 409)):
        refused = outcome.refused(error)
        assert isinstance(refused, AirflowException)
        assert not isinstance(refused, AirflowFailException)


def test_a_trigger_is_serialized_with_its_arguments() -> None:
    trigger = SparkgateSubmissionTrigger("driver-1", "conn", 17.5, kills=True)
    path, arguments = trigger.serialize()
    assert path == f"{SparkgateSubmissionTrigger.__module__}.{SparkgateSubmissionTrigger.__name__}"
    assert SparkgateSubmissionTrigger(**arguments).serialize() == trigger.serialize()
