"""Submits with Airflow's SparkSubmitHook and kills the driver with it, as Airflow does when a task is cleared."""

import sys

from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook

jar, script = sys.argv[1:]
hook = SparkSubmitHook(
    conn_id="spark",
    conf={"spark.master.rest.enabled": "true", "spark.sparkgate.idempotencyKey": "hook"},
    name="hooked",
    java_class="org.apache.spark.deploy.PythonRunner",
    application_args=[script, ""],
)
first = hook.submit(jar)
hook.on_kill()
print("RESULT " + first, flush=True)
