"""Submits jobs for scripts/cluster-test, in a pod of the cluster, and waits for their ends. Prints what happened as one line of
JSON.

It counts each request that fails, and repeats it with the same Idempotency-Key, as a client should.
"""

import collections
import json
import re
import sys
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor

URL, NAME, JOBS, REAL, SECONDS, SPARK_IMAGE = sys.argv[1], sys.argv[2], *map(int, sys.argv[3:6]), sys.argv[6]
ENDED = {"FINISHED", "FAILED", "KILLED", "ERROR", "LOST"}
failures = collections.Counter()


def call(path, body=None, headers=None):
    """Sends a request until it succeeds."""
    for _ in range(600):
        try:
            data = json.dumps(body).encode() if body else None
            request = urllib.request.Request(URL + path, data, {"Content-Type": "application/json", **(headers or {})})
            with urllib.request.urlopen(request, timeout=60) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            title = re.search(rb'"title":"([^"]*)', error.read())
            failures[f"{request.get_method()} {error.code} {title[1].decode() if title else ''}"] += 1
            if error.code < 500 and error.code != 429:
                raise
        except (OSError, ValueError) as error:
            failures[f"{request.get_method()} {getattr(error, 'reason', error)}"] += 1
        time.sleep(1)
    raise RuntimeError(f"{path} failed for ten minutes")


def submit(number):
    # The real ones are spread over the time.
    is_real = REAL > 0 and number % (JOBS // REAL) == 0
    properties = {"spark.executor.instances": "1", "spark.driver.memory": "512m", "spark.executor.memory": "512m"}
    properties |= {"spark.kubernetes.driver.request.cores": "5m", "spark.kubernetes.executor.request.cores": "5m"}
    # A busy node doesn't fail the driver itself.
    properties |= {f"spark.kubernetes.driver.{key}Timeout": "120000" for key in ("connection", "request")}
    properties["spark.kubernetes.container.image"] = SPARK_IMAGE if is_real else "ends:1"
    if not is_real:
        # So that many of them fit on a node.
        properties |= {"spark.driver.memory": "32m", "spark.driver.memoryOverhead": "16m"}
    body = {
        "name": f"{NAME}-{number}",
        "appResource": "local:///opt/spark/examples/jars/spark-examples.jar",
        "mainClass": "org.apache.spark.examples.SparkPi",
        "appArgs": ["2"],
        "sparkProperties": properties,
        "labels": {"load": NAME},
    }
    return call("/v1/submissions", body, {"Idempotency-Key": f"{NAME}-{number}"})["id"]


def outcome(submission):
    for _ in range(200):
        document = call(f"/v1/submissions/{submission}/wait?timeoutSeconds=20")
        if document["state"] in ENDED:
            return document["state"]
    return document["state"]


def main():
    # A network policy takes a moment to admit a new pod.
    call("/v1/submissions?limit=1")
    failures.clear()
    began = time.time()
    accepted = []
    with ThreadPoolExecutor(8) as pool:
        pending = []
        for number in range(JOBS):
            time.sleep(max(0, began + SECONDS * number / JOBS - time.time()))
            pending.append(pool.submit(submit, number))
        accepted = [one.result() for one in pending]
        accepted_after = time.time() - began
        states = collections.Counter(pool.map(outcome, accepted))
    print(json.dumps({
        "accepted": len(set(accepted)),
        "states": states,
        "failedRequests": failures,
        "submitSeconds": round(accepted_after),
        "seconds": round(time.time() - began),
        "ids": accepted,
    }), flush=True)


main()
