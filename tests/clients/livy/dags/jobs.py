"""Runs a job in the three ways of Airflow's provider for Livy: waiting in the worker, in the triggerer, and with a sensor."""

import os
from datetime import timedelta

import pendulum
from airflow.providers.apache.livy.operators.livy import LivyOperator
from airflow.providers.apache.livy.sensors.livy import LivySensor
from airflow.sdk import DAG

job = os.environ["GOOD_APPLICATION"]

# The trigger gives a batch up at the first 503, as of a gateway on a busy machine: Airflow's retries are the remedy.
patient = {"retries": 3, "retry_delay": timedelta(seconds=1)}

with DAG("jobs", schedule=None, start_date=pendulum.datetime(2026, 1, 1), default_args=patient) as dag:
    waited = LivyOperator(
        task_id="waited",
        livy_conn_id="livy",
        file=job,
        name="waited",
        args=["airflow", 7],
        driver_memory="512m",
        driver_cores="1",
        num_executors=1,
        conf={"spark.ui.enabled": False},
        polling_interval=1,
    )
    deferred = LivyOperator(task_id="deferred", livy_conn_id="livy", file=job, polling_interval=1, deferrable=True)
    submitted = LivyOperator(
        task_id="submitted",
        livy_conn_id="livy",
        file=job,
        extra_headers={"Idempotency-Key": "{{ dag.dag_id }}/submitted"},
    )
    sensed = LivySensor(
        task_id="sensed", livy_conn_id="livy", batch_id="{{ ti.xcom_pull(task_ids='submitted') }}"
    )
    waited >> deferred >> submitted >> sensed
