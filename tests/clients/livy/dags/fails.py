"""Runs a job that fails, and waits for it in the worker and in the triggerer."""

import os

import pendulum
from airflow.providers.apache.livy.operators.livy import LivyOperator
from airflow.sdk import DAG

job = os.environ["FAILING_APPLICATION"]

with DAG("fails", schedule=None, start_date=pendulum.datetime(2026, 1, 1)) as dag:
    LivyOperator(task_id="waited", livy_conn_id="livy", file=job, polling_interval=1)
    LivyOperator(task_id="deferred", livy_conn_id="livy", file=job, polling_interval=1, deferrable=True)
