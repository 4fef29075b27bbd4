"""A backend of Kubeflow's SDK: its Spark jobs and sessions run through a gateway. Needs `sparkgate[kubeflow]`."""

from __future__ import annotations

import inspect
import math
import re
import tempfile
import textwrap
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from kubeflow.spark import (
    Annotations,
    Driver,
    Executor,
    FileJob,
    FuncJob,
    Labels,
    Name,
    NodeSelector,
    SparkClient,
    SparkConnectInfo,
    SparkConnectState,
    SparkJob,
    SparkJobStatus,
    Toleration,
)
from kubeflow.spark.backends.base import RuntimeBackend

from sparkgate import models
from sparkgate._local import uploaded
from sparkgate._remedies import REMEDIES
from sparkgate._sessions import connected, open_session
from sparkgate.client import Client, Submission
from sparkgate.errors import SparkgateError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

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
_SESSION = {
    "OPENING": SparkConnectState.PROVISIONING,
    "READY": SparkConnectState.READY,
    "ENDED": SparkConnectState.FAILED,
}
#: Kubernetes' units of memory, in MiB.
_MIB = {"Ki": 2**-10, "Mi": 1, "Gi": 2**10, "Ti": 2**20, "k": 1e3 / 2**20, "M": 1e6 / 2**20, "G": 1e9 / 2**20, "T": 1e12 / 2**20}


def spark_client(client: Client | None = None, *, namespace: str | None = None) -> SparkClient:
    """Returns Kubeflow's client with a gateway as its backend.

    By default the gateway and the token are found as the command line finds them. Jobs and sessions run in `namespace`, or in the
    one that the gateway has for the caller.
    """
    # The constructor knows Kubernetes only, and reads a kubeconfig.
    spark: SparkClient = SparkClient.__new__(SparkClient)
    spark.backend = SparkgateBackend(client or Client(), namespace=namespace)
    return spark


class SparkgateBackend(RuntimeBackend):
    """Runs batch jobs and Spark Connect sessions through a gateway."""

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
        conf = _executors(num_executors, resources_per_executor)
        asked = self._asked(f"spark-job-{_suffix()}", conf, options, spark_conf)
        with _errors(f"submitting {asked.name}"):
            app, args = self._application(job, asked.conf.get(_NAMESPACE))
            submission = self.client.submit(
                app,
                *args,
                name=asked.name,
                unique_name=True,
                labels={**asked.labels, **_OF_SDK, _NAME: asked.name},
                conf=asked.conf,
                driver_pod_template=asked.templates.get("driver"),
                executor_pod_template=asked.templates.get("executor"),
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
        return self._log(name, self._find(name).id, follow)

    def create_and_connect(
        self,
        num_executors: int | None = None,
        resources_per_executor: dict[str, str] | None = None,
        spark_conf: dict[str, str] | None = None,
        driver: Driver | None = None,
        executor: Executor | None = None,
        options: list[Any] | None = None,
        timeout: int = 300,
        connect_timeout: int = 120,
    ) -> SparkSession:
        """Opens a session and returns PySpark's `SparkSession` of it. The caller's live session of this name is used as it is.

        `connect_timeout` is not used: the session accepts connections when it is ready.

        Raises `RuntimeError` if the session is refused or ends before it is ready, and `TimeoutError` after `timeout`
        seconds: then the session goes on opening.
        """
        driver, executor = driver or Driver(), executor or Executor()
        conf = {
            **_executors(
                num_executors if executor.num_instances is None else executor.num_instances,
                executor.resources_per_executor or resources_per_executor,
            ),
            **_resources("driver", driver.resources),
        }
        fields = {
            "spark.kubernetes.container.image": driver.image,
            "spark.kubernetes.authenticate.driver.serviceAccountName": driver.service_account,
            "spark.driver.extraJavaOptions": driver.java_options,
            "spark.executor.extraJavaOptions": executor.java_options,
        }
        conf.update({key: text for key, text in fields.items() if text})
        asked = self._asked(f"spark-connect-{_suffix()}", conf, options, spark_conf)
        with _errors(f"opening the session {asked.name}"):
            opened = open_session(
                self.client,
                asked.name,
                timeout,
                {
                    "conf": asked.conf,
                    "labels": asked.labels,
                    "driver_pod_template": asked.templates.get("driver"),
                    "executor_pod_template": asked.templates.get("executor"),
                },
            )
            return connected(self.client, opened)

    def get_session(self, name: str) -> SparkConnectInfo:
        """Reads a session of the caller: the live one of this name, or the last one that has ended.

        Raises `RuntimeError` if there is none.
        """
        session = self._find_session(name)
        with _errors(f"asking for the session {name}"):
            # The gateway looks whether the server of this session accepts connections.
            body = self.client.request("GET", f"/v1/sessions/{session.id}")
            return self._info(models.ConnectSession.model_validate_json(body))

    def list_sessions(self) -> list[SparkConnectInfo]:
        """Lists the live sessions of the caller, the newest first."""
        with _errors("listing sessions"):
            return [self._info(session) for session in self._sessions()]

    def delete_session(self, name: str) -> None:
        """Ends a session. Its record and its log are kept as long as those of all submissions.

        Raises `RuntimeError` if there is none of this name.
        """
        session = self._find_session(name)
        with _errors(f"deleting the session {name}"):
            self.client.request("DELETE", f"/v1/sessions/{session.id}")

    def get_session_logs(self, name: str, follow: bool = False) -> Iterator[str]:
        """Reads the lines of the log of the session's driver, also after its end.

        Raises `RuntimeError` if there is no session of this name.
        """
        return self._log(name, self._find_session(name).id, follow)

    def _asked(
        self, name: str, conf: dict[str, str], options: Sequence[Any] | None, spark_conf: Mapping[str, str] | None
    ) -> _Asked:
        """Adds to the name and the properties what the options ask for, and then `spark_conf`.

        Raises `ValueError` for an option that isn't supported.
        """
        labels, tolerations = dict[str, str](), list[dict[str, str]]()
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
        conf.update(spark_conf or {})
        if self.namespace is not None:
            conf[_NAMESPACE] = self.namespace
        templates = {role: _pod(role, tolerations) for role in ("driver", "executor")} if tolerations else {}
        return _Asked(name, labels, conf, templates)

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

    def _sessions(self, *, ended: bool = False) -> list[models.ConnectSession]:
        """Returns the caller's own sessions, the newest first: those that live, or also those that have ended.

        Others may have sessions of the same names, and the caller itself a shared one.
        """
        caller = self.client.me().subject
        body = self.client.request("GET", "/v1/sessions", params={"all": ended})
        return [
            session
            for session in models.ConnectSessionList.model_validate_json(body).items
            if session.principal == caller and not session.shared and self.namespace in (None, session.namespace)
        ]

    def _find_session(self, name: str) -> models.ConnectSession:
        with _errors(f"asking for the session {name}"):
            for ended in (False, True):
                for session in self._sessions(ended=ended):
                    if session.name == name:
                        return session
        raise RuntimeError(f"there is no session {name}")

    def _info(self, session: models.ConnectSession) -> SparkConnectInfo:
        return SparkConnectInfo(
            name=session.name,
            namespace=session.namespace,
            state=_SESSION.get(session.state.value, SparkConnectState.NOT_READY),
            driver_pod_name=self.client.get(session.id).driver.pod,
            creation_timestamp=session.created_at,
        )

    def _log(self, name: str, id: str, follow: bool) -> Iterator[str]:
        with _errors(f"reading the log of {name}"):
            yield from self.client.logs(id, follow=follow)


class _Asked(NamedTuple):
    """What a caller asks of a job or a session."""

    name: str
    labels: dict[str, str]
    conf: dict[str, str]
    #: The pod templates of `driver` and `executor`, if there are any.
    templates: dict[str, Any]


def _suffix() -> str:
    return uuid.uuid4().hex[:8]


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


def _executors(count: int | None, resources: Mapping[str, str] | None) -> dict[str, str]:
    """Returns the properties of executors."""
    instances = {} if count is None else {"spark.executor.instances": str(count)}
    return {**instances, **_resources("executor", resources)}


def _resources(role: str, resources: Mapping[str, str] | None) -> dict[str, str]:
    """Returns the properties of a role from quantities of Kubernetes."""
    properties = dict[str, str]()
    for name, quantity in (resources or {}).items():
        text = str(quantity).strip()
        if name == "cpu" and (parts := re.fullmatch(r"(\d+(?:\.\d+)?)(m?)", text)):
            cores = float(parts[1]) / (1000 if parts[2] else 1)
            properties[f"spark.{role}.cores"] = str(math.ceil(cores))
        elif name == "memory" and (parts := re.fullmatch(r"(\d+(?:\.\d+)?)([KMGT]i|[kMGT])", text)):
            properties[f"spark.{role}.memory"] = f"{math.ceil(float(parts[1]) * _MIB[parts[2]])}m"
        else:
            raise ValueError(f"resources of the {role}: {name}={text} is neither cpu, such as 2, nor memory, such as 4Gi")
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
