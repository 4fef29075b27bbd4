"""The first answer to `submit` is lost, so that the request is retried; the job fails."""

import json
import os
from datetime import timedelta

import pendulum
from airflow.providers.http.operators.http import HttpOperator
from airflow.providers.http.sensors.http import HttpSensor
from airflow.sdk import DAG

answers = []


def lost_once(response):
    answers.append(response)
    if len(answers) == 1:
        raise ConnectionError("the answer got lost")
    return {"id": response.json()["id"], "status": response.status_code, "first": answers[0].json()["id"]}


with DAG("fails", schedule=None, start_date=pendulum.datetime(2026, 1, 1)) as dag:
    submit = HttpOperator(
        task_id="submit",
        http_conn_id="sparkgate",
        endpoint="v1/submissions",
        headers={
            "Content-Type": "application/json",
            "Idempotency-Key": "{{ dag.dag_id }}/{{ task.task_id }}/{{ run_id }}/{{ ti.map_index }}",
        },
        data=json.dumps({"name": "fails", "appResource": os.environ["FAILING_APPLICATION"]}),
        response_filter=lost_once,
        retries=1,
        retry_delay=timedelta(seconds=0),
    )
    finished = HttpSensor(
        task_id="finished",
        http_conn_id="sparkgate",
        endpoint="v1/submissions/{{ ti.xcom_pull(task_ids='submit')['id'] }}/outcome",
        mode="reschedule",
    )
    submit >> finished
