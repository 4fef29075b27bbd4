"""Waits in Airflow's triggerer."""

import json
import os

import pendulum
from airflow.providers.http.operators.http import HttpOperator
from airflow.providers.http.sensors.http import HttpSensor
from airflow.sdk import DAG

with DAG("deferred", schedule=None, start_date=pendulum.datetime(2026, 1, 1)) as dag:
    submit = HttpOperator(
        task_id="submit",
        http_conn_id="sparkgate",
        endpoint="v1/submissions",
        headers={"Content-Type": "application/json"},
        data=json.dumps({"name": "deferred", "appResource": os.environ["GOOD_APPLICATION"]}),
        response_filter=lambda response: response.json()["id"],
    )
    finished = HttpSensor(
        task_id="finished",
        http_conn_id="sparkgate",
        endpoint="v1/submissions/{{ ti.xcom_pull(task_ids='submit') }}/outcome",
        deferrable=True,
    )
    submit >> finished
