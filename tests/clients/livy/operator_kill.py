"""Submits with LivyOperator and kills the batch with it, as Airflow does when a task is cleared."""

import json
import sys

from airflow.providers.apache.livy.hooks.livy import BatchState
from airflow.providers.apache.livy.operators.livy import LivyOperator

operator = LivyOperator(task_id="killed", livy_conn_id="livy", file=sys.argv[1], polling_interval=1)
batch = operator.submit_job({})
states = {operator.hook.get_batch_state(batch)}
while BatchState.RUNNING not in states:
    states.add(operator.hook.get_batch_state(batch))
operator.on_kill()
try:
    gone = str(operator.hook.get_batch_state(batch))
except Exception as error:
    gone = str(error)
print("RESULT " + json.dumps({"batch": batch, "gone": gone}), flush=True)
