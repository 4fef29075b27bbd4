"""A backend of Kubeflow's SDK: its Spark jobs run through a gateway. Needs `sparkgate[kubeflow]`."""

from __future__ import annotations

import inspect
import math
import re
import tempfile
import textwrap
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

from kubeflow.spark import (
    Annotations,
    FileJob,
    FuncJob,
    Labels,
    Name,
    NodeSelector,
    SparkClient,
    SparkConnectInfo,
    SparkJob,
    SparkJobStatus,
    Toleration,
)
from kubeflow.spark.backends.base import RuntimeBackend

from sparkgate import models
from sparkgate._local import uploaded
from sparkgate._remedies import REMEDIES
from sparkgate.client import Client, Submission
from sparkgate.errors import SparkgateError

__all__ = ["SparkgateBackend", "spark_client"]

#: The labels of the SDK's jobs: the name, and one that all of them have.
_NAME, _OF_SDK = "kubeflow-job", {"kubeflow-sdk": "spark"}
_NAMESPACE = "spark.kubernetes.namespace"
_STATUS = {
    "QUEUED": SparkJobStatus.CREATED,
    "LAUNCHING": SparkJobStatus.CREATED,
    "PENDING": SparkJobStatus.CREATED,
    "RUNNING": SparkJobStatus.RUNNING,
    "KILLING": SparkJobStatus.RUNNING,
    "FINISHED": SparkJobStatus.COMPLETED,
}
#: Kubernetes' units of memory, in MiB.
_MIB = {"Ki": 2**-10, "Mi": 1, "Gi": 2**10, "Ti": 2**20, "k": 1e3 / 2**20, "M": 1e6 / 2**20, "G": 1e9 / 2**20, "T": 1e12 / 2**20}


def spark_client(client: Client | None = None, *, namespace: str | None = None) -> SparkClient:
    """Returns Kubeflow's client with a gateway as its backend.

    By default the gateway and the token are found as the command line finds them. Jobs run in `namespace`, or in the one that the
    gateway has for the caller.
    """
    # The constructor knows Kubernetes only, and reads a kubeconfig.
    spark: SparkClient = SparkClient.__new__(SparkClient)
    spark.backend = SparkgateBackend(client or Client(), namespace=namespace)
    return spark


class SparkgateBackend(RuntimeBackend):
    """Runs batch jobs through a gateway. It has no Spark Connect sessions."""

    def __init__(self, client: Client, *, namespace: str | None = None) -> None:
        self.client = client
        self.namespace = namespace

    def submit_job(
        self,
        job: FileJob | FuncJob,
        num_executors: int | None = None,
        resources_per_executor: dict[str, str] | None = None,
        options: list[Any] | None = None,
        spark_conf: dict[str, str] | None = None,
    ) -> SparkJob:
        """Submits a job. A file on this machine and the source of a function are uploaded.

        The name must not be that of another job that has not ended.
        """
        name = f"spark-job-{uuid.uuid4().hex[:8]}"
        labels, conf = dict[str, str](), _resources(num_executors, resources_per_executor)
        tolerations, templates = list[dict[str, str]](), dict[str, Any]()
        for option in options or []:
            match option:
                case Name():
                    name = option.name
                case Labels():
                    labels.update(option.labels)
                case Annotations():
                    conf.update({f"spark.kubernetes.driver.annotation.{key}": text for key, text in option.annotations.items()})
                case NodeSelector():
                    conf.update({f"spark.kubernetes.node.selector.{key}": text for key, text in option.selectors.items()})
                case Toleration():
                    fields = {"key": option.key, "operator": option.operator, "value": option.value, "effect": option.effect}
                    tolerations.append({field: text for field, text in fields.items() if text})
                case _:
                    raise ValueError(f"the option {type(option).__name__} is not supported by {type(self).__name__}")
        if tolerations:
            templates = {f"{role}_pod_template": _pod(role, tolerations) for role in ("driver", "executor")}
        conf.update(spark_conf or {})
        if self.namespace is not None:
            conf[_NAMESPACE] = self.namespace
        with _errors(f"submitting {name}"):
            app, args = self._application(job, conf.get(_NAMESPACE))
            labels = {**labels, **_OF_SDK, _NAME: name}
            submission = self.client.submit(
                app,
                *args,
                name=name,
                unique_name=True,
                labels=labels,
                conf=conf,
                **templates,
            )
        return _job(submission, num_executors)

    def get_job(self, name: str) -> SparkJob:
        """Reads a job: the newest one of this name."""
        return _job(self._find(name))

    def list_jobs(self, status: set[SparkJobStatus] | None = None) -> list[SparkJob]:
        """Lists the jobs that the SDK has submitted, the newest first."""
        with _errors("listing jobs"):
            jobs = [_job(submission) for submission in self.client.list(labels=_OF_SDK, namespace=self.namespace)]
        return [job for job in jobs if not status or job.status in status]

    def delete_job(self, name: str) -> None:
        """Kills a job. Its record and its log are kept as long as those of all submissions."""
        with _errors(f"deleting {name}"):
            self._find(name).kill()

    def wait_for_job_status(
        self,
        name: str,
        status: set[SparkJobStatus] = {SparkJobStatus.COMPLETED},  # noqa: B006 (the SDK's own)
        timeout: int = 600,
        polling_interval: int = 2,
    ) -> SparkJob:
        """Waits until a job has one of the statuses. The gateway says when: `polling_interval` is not used.

        Raises `RuntimeError` if the job has ended with another status, and `TimeoutError` after the timeout.
        """
        submission, deadline = self._find(name), time.monotonic() + timeout
        state = "RUNNING" if SparkJobStatus.RUNNING in status else None
        while (job := _job(submission)).status not in status:
            if submission.has_ended:
                raise RuntimeError(f"the job {name} can't become {_names(status)}: {_reason(submission)}")
            with _errors(f"waiting for {name}"):
                submission.wait(max(0.0, deadline - time.monotonic()), state=state)
            # The state has been passed: only the end is left to wait for.
            state = None
        return job

    def get_job_logs(self, name: str, follow: bool = False) -> Iterator[str]:
        """Reads the lines of the driver's log, also after the driver's end."""
        submission = self._find(name)

        def lines() -> Iterator[str]:
            with _errors(f"reading the log of {name}"):
                yield from submission.logs(follow=follow)

        return lines()

    def create_and_connect(self, *_: Any, **__: Any) -> NoReturn:
        """Refuses: a gateway runs batch jobs."""
        _no_sessions()

    def get_session(self, name: str) -> SparkConnectInfo:
        """Refuses: a gateway runs batch jobs."""
        _no_sessions()

    def list_sessions(self) -> list[SparkConnectInfo]:
        """Returns an empty list: a gateway runs batch jobs."""
        return []

    def delete_session(self, name: str) -> None:
        """Refuses: a gateway runs batch jobs."""
        _no_sessions()

    def get_session_logs(self, name: str, follow: bool = False) -> Iterator[str]:
        """Refuses: a gateway runs batch jobs."""
        _no_sessions()

    def _application(self, job: FileJob | FuncJob, namespace: str | None) -> tuple[str, list[str]]:
        """Returns the URI of the application, and its arguments."""
        if isinstance(job, FileJob):
            return uploaded(self.client, job.file_source, namespace), list(job.args or [])
        if not isinstance(job, FuncJob):
            raise TypeError("the job must be a FileJob or a FuncJob")
        with tempfile.TemporaryDirectory() as folder:
            script = Path(folder) / f"{getattr(job.func, '__name__', 'function')}.py"
            script.write_text(_script(job), encoding="utf-8")
            return self.client.upload(script, namespace=namespace), []

    def _find(self, name: str) -> Submission:
        with _errors(f"asking for {name}"):
            labels = {**_OF_SDK, _NAME: name}
            for submission in self.client.list(labels=labels, namespace=self.namespace, limit=1):
                # Lists leave out details of a failure.
                return submission.refresh()
        raise RuntimeError(f"there is no Spark job {name}")


def _script(job: FuncJob) -> str:
    """Returns a program that calls the function."""
    function, arguments = job.func, job.func_args or {}
    if not inspect.isfunction(function) or function.__name__ == "<lambda>" or inspect.iscoroutinefunction(function):
        raise ValueError("the function of a FuncJob must be one that `def` has defined")
    try:
        inspect.signature(function).bind(**arguments)
    except TypeError as error:
        raise ValueError(f"the arguments of {function.__name__} are wrong: {error}") from error
    try:
        source = textwrap.dedent(inspect.getsource(function))
    except OSError as error:
        raise ValueError(f"the source of {function.__name__} can't be read: define it in a file") from error
    if not source.startswith("def "):
        raise ValueError(f"{function.__name__} has decorators, which the driver doesn't have")
    return f"{source}\n\n{function.__name__}(**{arguments!r})\n"


def _resources(executors: int | None, resources: Mapping[str, str] | None) -> dict[str, str]:
    """Returns the properties of executors from quantities of Kubernetes."""
    properties = {} if executors is None else {"spark.executor.instances": str(executors)}
    for name, quantity in (resources or {}).items():
        text = str(quantity).strip()
        if name == "cpu" and (parts := re.fullmatch(r"(\d+(?:\.\d+)?)(m?)", text)):
            cores = float(parts[1]) / (1000 if parts[2] else 1)
            properties["spark.executor.cores"] = str(math.ceil(cores))
        elif name == "memory" and (parts := re.fullmatch(r"(\d+(?:\.\d+)?)([KMGT]i|[kMGT])", text)):
            properties["spark.executor.memory"] = f"{math.ceil(float(parts[1]) * _MIB[parts[2]])}m"
        else:
            raise ValueError(f"resources_per_executor: {name}={text} is neither cpu, such as 2, nor memory, such as 4Gi")
    return properties


def _pod(role: str, tolerations: list[dict[str, str]]) -> dict[str, Any]:
    """Returns a pod template. Spark's container is its first one."""
    spec = {"tolerations": tolerations, "containers": [{"name": f"spark-kubernetes-{role}"}]}
    return {"apiVersion": "v1", "kind": "Pod", "spec": spec}


def _job(submission: models.Submission, executors: int | None = None) -> SparkJob:
    return SparkJob(
        name=submission.labels.get(_NAME, submission.name),
        namespace=submission.namespace,
        status=_STATUS.get(submission.state.value, SparkJobStatus.FAILED),
        creation_timestamp=submission.created_at,
        num_executors=executors,
        driver_pod_name=submission.driver.pod,
    )


def _reason(submission: Submission) -> str:
    text, failure = f"{submission.id} is {submission.state.value}", submission.failure
    if failure is not None:
        text += f": {failure.code.value} ({failure.class_.value}): {failure.message}"
        if remedy := REMEDIES.get(failure.code.value):
            text += f"\nWhat to do: {remedy}"
    return text


def _names(status: set[SparkJobStatus]) -> str:
    return " or ".join(sorted(each.value for each in status))


@contextmanager
def _errors(action: str) -> Iterator[None]:
    """Turns the gateway's errors into those that the SDK documents."""
    try:
        yield
    except SparkgateError as error:
        if isinstance(error, TimeoutError):
            raise
        raise RuntimeError(f"{action}: {error}") from error


def _no_sessions() -> NoReturn:
    raise NotImplementedError("a gateway runs batch jobs: use Kubeflow's own backend for Spark Connect sessions")
