"""Runs three jobs with pylivy: one to its end, one that fails, and one that is killed."""

import json
import sys

from livy import LivyBatch
from livy.client import LivyClient
from livy.models import SessionState

url, key, good, fails, sleeps = sys.argv[1:]
auth = ("pylivy", key)


def result(**values):
    print("RESULT " + json.dumps(values), flush=True)


def create(file, **options):
    return LivyBatch.create(url, file=file, auth=auth, **options)


batch = create(good, name="pylivy", args=["x", "y"], num_executors=1, spark_conf={"spark.ui.enabled": False})
result(state=batch.wait().value, log=batch.log(from_=0, size=-1), last=batch.log(size=2), id=batch.batch_id)

batch = create(fails)
result(state=batch.wait().value, log=batch.log(), id=batch.batch_id)

batch = create(sleeps)
while batch.state != SessionState.RUNNING:
    pass
batch.kill()
client = LivyClient(url, auth)
listed = [batch.batch_id for batch in client.list_batches()]
result(gone=client.get_batch(batch.batch_id) is None, listed=listed, id=batch.batch_id)
