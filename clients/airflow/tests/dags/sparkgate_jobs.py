"""The DAGs of the tests."""

from __future__ import annotations

import os
from datetime import timedelta
from typing import Any

import pendulum
from airflow.sdk import DAG, BaseOperator, task

from sparkgate_provider.operators.sparkgate import SparkgateSubmitOperator
from sparkgate_provider.sensors.sparkgate import SparkgateSubmissionSensor

JOBS = os.environ.get("JOBS", "/nonexistent")
ARGUMENTS: dict[str, Any] = {"retries": 2, "retry_delay": timedelta(0)}


def dag(name: str) -> DAG:
    return DAG(name, schedule=None, start_date=pendulum.datetime(2026, 1, 1), default_args=ARGUMENTS)


def job(script: str, *args: str | int, **options: Any) -> SparkgateSubmitOperator:
    options.setdefault("task_id", "job")
    return SparkgateSubmitOperator(application=f"local://{JOBS}/{script}.py", application_args=args, **options)


with dag("finishes") as finishes:
    job("ends", 0, name="finishes {{ run_id[:6] }}", conf={"spark.executor.instances": "{{ 1 + 1 }}"}, labels={"team": "data"})

with dag("finishes_deferred") as finishes_deferred:
    job("ends", 0, deferrable=True)

with dag("fails") as fails:
    job("ends", 3)

with dag("fails_deferred") as fails_deferred:
    job("ends", 3, deferrable=True, no_retry_on=["APPLICATION_ERROR"])

with dag("is_refused") as is_refused:
    job("ends", 0, conf={"spark.driver.memory": "much"})

with dag("senses") as senses:
    submitted: BaseOperator = job("ends", 0, wait_for_completion=False, task_id="submit")
    for deferrable in (False, True):
        SparkgateSubmissionSensor(
            task_id=f"sense_{'deferred' if deferrable else 'here'}",
            submission_id="{{ ti.xcom_pull(task_ids='submit')['submission_id'] }}",
            poke_interval=0.2,
            deferrable=deferrable,
        ).set_upstream(submitted)

with dag("senses_a_failure") as senses_a_failure:
    failing = job("ends", 3, wait_for_completion=False, task_id="submit")
    for soft in (False, True):
        SparkgateSubmissionSensor(
            task_id="soft" if soft else "hard",
            submission_id="{{ ti.xcom_pull(task_ids='submit')['submission_id'] }}",
            poke_interval=0.2,
            deferrable=soft,
            soft_fail=soft,
        ).set_upstream(failing)

with dag("maps") as maps:

    @task
    def codes() -> list[list[int]]:
        return [[0], [0], [0]]

    SparkgateSubmitOperator.partial(task_id="job", application=f"local://{JOBS}/ends.py").expand(application_args=codes())

with dag("waits") as waits:
    job("waits", os.environ.get("GATE", "/nonexistent"), task_id="job", name="{{ ti.task_id }} {{ ti.try_number }}")

with dag("waits_deferred") as waits_deferred:
    job("waits", os.environ.get("GATE", "/nonexistent"), deferrable=True)

with dag("takes_too_long") as takes_too_long:
    limits: dict[str, Any] = {"execution_timeout": timedelta(seconds=8), "kill_grace": 0, "retries": 0}
    job("waits", "/nonexistent/gate", task_id="here", **limits)
    job("waits", "/nonexistent/gate", task_id="deferred", deferrable=True, **limits)
