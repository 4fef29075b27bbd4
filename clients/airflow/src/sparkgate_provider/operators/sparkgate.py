"""Submits Spark applications."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from datetime import timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

from airflow.sdk import BaseOperator, conf
from airflow.sdk.exceptions import AirflowException

from sparkgate_provider import outcome
from sparkgate_provider.hooks.sparkgate import SparkgateHook
from sparkgate_provider.keys import key_of, labels_of
from sparkgate_provider.links.sparkgate import SparkgateSubmissionLink
from sparkgate_provider.triggers.sparkgate import SparkgateSubmissionTrigger

if TYPE_CHECKING:
    from airflow.sdk import Context

    from sparkgate import Client, Submission

#: The key of the generation in the task's state store, and that of the submission's id in XCom.
GENERATION = "sparkgate_generation"
SUBMISSION_ID = "submission_id"


class SparkgateSubmitOperator(BaseOperator):
    """Submits a Spark application, and waits until it has ended.

    A try that follows one whose worker died finds the submission again: nothing is submitted twice. A new submission is
    made if an earlier try has seen the last one fail, if the last one was killed, or if the task was cleared.

    The failure's class decides whether Airflow's `retries` are used: see `no_retry_on`. Retries of the driver after a lost node
    or an eviction are the gateway's affair: `max_retries`.

    :param application: the URI of a jar, Python or R file that the driver can read (templated)
    :param application_args: its arguments (templated)
    :param main_class: the class to run, for JVM applications (templated)
    :param conf: Spark properties (templated)
    :param name: the application's name; by default the ids of DAG and task (templated)
    :param labels: labels of the submission, besides those of DAG, task and run (templated)
    :param spark_version: the Spark release or its line, one that the gateway serves (templated)
    :param env: environment variables of the driver; `SPARK_USER` is the owner (templated)
    :param proxy_user: the user that the application impersonates (templated)
    :param driver_pod_template: a pod, as a mapping or YAML, or the name of one of the gateway's templates (templated)
    :param executor_pod_template: the same for executors (templated)
    :param max_retries: the gateway's retries after failures of the cluster; a mapping has `infrastructure` and `application`
    :param start_timeout: kill the submission if it isn't running after this time
    :param run_timeout: kill the submission if it runs longer
    :param kill_grace: the time from SIGTERM to SIGKILL
    :param unique_name: refuse to run beside a live submission with the same name
    :param idempotency_key: a key of your own, instead of that of the task instance (templated). The task then never submits again
    :param deferrable: wait in the triggerer instead of a worker
    :param wait_for_completion: `False` ends the task when the submission is accepted
    :param log_lines: how many of the last lines of the driver's log are shown by a deferred task; a task that waits in its worker
        shows all lines as they are written. 0 shows none
    :param kill_on_task_kill: whether the submission is killed with the task; if not, the next try finds it again
    :param no_retry_on: classes and codes of failures that end the task without further tries
    :param sparkgate_conn_id: the id of the connection (templated)
    """

    template_fields: Sequence[str] = (
        "application",
        "application_args",
        "main_class",
        "conf",
        "name",
        "labels",
        "spark_version",
        "env",
        "proxy_user",
        "driver_pod_template",
        "executor_pod_template",
        "idempotency_key",
        "sparkgate_conn_id",
    )
    template_fields_renderers: ClassVar[dict[str, str]] = {"conf": "json", "labels": "json", "env": "json"}
    operator_extra_links = (SparkgateSubmissionLink(),)
    ui_color = "#f5d6b8"

    def __init__(
        self,
        *,
        application: str,
        application_args: Sequence[str | int | float] | None = None,
        main_class: str | None = None,
        conf: Mapping[str, str | int | float | bool] | None = None,
        name: str | None = None,
        labels: Mapping[str, str] | None = None,
        spark_version: str | None = None,
        env: Mapping[str, str] | None = None,
        proxy_user: str | None = None,
        driver_pod_template: Mapping[str, Any] | str | None = None,
        executor_pod_template: Mapping[str, Any] | str | None = None,
        max_retries: int | Mapping[str, int] | None = None,
        start_timeout: timedelta | float | None = None,
        run_timeout: timedelta | float | None = None,
        kill_grace: timedelta | float | None = None,
        unique_name: bool | None = None,
        idempotency_key: str | None = None,
        deferrable: bool | None = None,
        wait_for_completion: bool = True,
        log_lines: int = 1000,
        kill_on_task_kill: bool = True,
        no_retry_on: Collection[str] = outcome.NO_RETRY_ON,
        sparkgate_conn_id: str = SparkgateHook.default_conn_name,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.application = application
        self.application_args = application_args
        self.main_class = main_class
        self.conf = conf
        self.name = name
        self.labels = labels
        self.spark_version = spark_version
        self.env = env
        self.proxy_user = proxy_user
        self.driver_pod_template = driver_pod_template
        self.executor_pod_template = executor_pod_template
        self.max_retries = max_retries
        self.start_timeout = start_timeout
        self.run_timeout = run_timeout
        self.kill_grace = kill_grace
        self.unique_name = unique_name
        self.idempotency_key = idempotency_key
        self.deferrable = _default_deferrable() if deferrable is None else deferrable
        self.wait_for_completion = wait_for_completion
        self.log_lines = log_lines
        self.kill_on_task_kill = kill_on_task_kill
        self.no_retry_on = no_retry_on
        self.sparkgate_conn_id = sparkgate_conn_id
        self._submission_id: str | None = None
        self._was_killed = False

    @cached_property
    def hook(self) -> SparkgateHook:
        """The connection to the gateway."""
        return SparkgateHook(self.sparkgate_conn_id)

    def execute(self, context: Context) -> dict[str, Any]:
        """Submits the application or finds its submission, and waits for its end."""
        from sparkgate import SparkgateError

        try:
            with self.hook.get_conn() as client:
                submission = self._find_or_submit(client, context)
                self._submission_id = submission.id
                ti = context["ti"]
                ti.xcom_push(key=SUBMISSION_ID, value=submission.id)
                # Now already, not only when the task ends.
                ti.xcom_push(key=SparkgateSubmissionLink().xcom_key, value=self.hook.link(submission.id))
                if not self.wait_for_completion:
                    return outcome.result(submission)
                if self.deferrable and not submission.has_ended:
                    self._defer(submission)
                if self.log_lines:
                    self._follow_log(client, submission)
                submission.wait()
                return self._ended(submission, context)
        except (SparkgateError, ValueError, TypeError) as error:
            if not isinstance(error, SparkgateError):
                raise
            raise outcome.refused(error) from error

    def execute_complete(self, context: Context, event: dict[str, Any]) -> dict[str, Any]:
        """Takes over when the trigger has fired."""
        from sparkgate import NotFound, SparkgateError

        self._submission_id = event["submission_id"]
        try:
            with self.hook.get_conn() as client:
                submission = client.get(event["submission_id"])
                if event["status"] == "error":
                    # The next try finds the submission again.
                    raise AirflowException(event["message"])
                if event["status"] == "timeout" and not submission.has_ended:
                    submission.kill()
                    raise AirflowException(f"{event['message']}; it is being killed")
                if self.log_lines:
                    try:
                        for line in submission.logs(tail=self.log_lines):
                            self.log.info("%s", line)
                    except NotFound as error:
                        self.log.warning("%s", error)
                return self._ended(submission, context)
        except SparkgateError as error:
            raise outcome.refused(error) from error

    def on_kill(self) -> None:
        """Kills the submission."""
        if self._submission_id is None or not self.kill_on_task_kill:
            return
        self._was_killed = True
        self.log.info("the task is being killed: killing %s", self._submission_id)
        # The client of the interrupted call can't be used here.
        with self.hook.get_conn(retry_seconds=20) as client:
            client.get(self._submission_id).kill()

    def _find_or_submit(self, client: Client, context: Context) -> Submission:
        if self.idempotency_key:
            return self._submit(client, self.idempotency_key, context)
        key, generation = key_of(context), _generation(context)
        while True:
            submission = self._submit(client, f"{key}/{generation}", context)
            if not submission.is_replayed:
                return submission
            failure = submission.failure
            # Killed with an earlier try of the task, or while no try was following it.
            was_killed = failure is not None and failure.class_ == "cancelled"
            if submission.state == "KILLING" or was_killed:
                submission.wait()
            elif not submission.has_ended:
                self.log.info("found the submission of an earlier try: %s is %s", submission.id, submission.state)
                return submission
            elif submission.succeeded or _store(context) is not None:
                self.log.info("the submission of an earlier try has ended meanwhile: %s is %s", submission.id, submission.state)
                return submission
            self.log.info("the submission of an earlier try, %s, is %s: submitting again", submission.id, submission.state)
            generation += 1
            _set_generation(context, generation)

    def _submit(self, client: Client, key: str, context: Context) -> Submission:
        from sparkgate import InvalidRequest, MaxRetries

        retries = self.max_retries
        try:
            submission = client.submit(
                self.application,
                *(self.application_args or ()),
                idempotency_key=key,
                main_class=self.main_class,
                conf=self.conf,
                name=self.name or f"{self.dag_id}.{self.task_id}",
                labels={**labels_of(context), **(self.labels or {})},
                spark_version=self.spark_version,
                env=self.env,
                proxy_user=self.proxy_user,
                driver_pod_template=self.driver_pod_template,
                executor_pod_template=self.executor_pod_template,
                retries=MaxRetries(**retries) if isinstance(retries, Mapping) else retries,
                start_timeout=self.start_timeout,
                run_timeout=self.run_timeout,
                kill_grace=self.kill_grace,
                unique_name=self.unique_name,
            )
        except InvalidRequest as error:
            if error.code != "idempotency-key-reused" or not error.submission_id:
                raise
            # The DAG, or what its templates depend on, has changed since the earlier try.
            self.log.warning("%s was submitted by an earlier try of this task with other arguments", error.submission_id)
            submission = client.get(error.submission_id)
            submission._is_replayed = True
        if not submission.is_replayed:
            self.log.info("submitted %s as %s", submission.name, submission.id)
        return submission

    def _defer(self, submission: Submission) -> None:
        limit = self.execution_timeout
        self.defer(
            trigger=SparkgateSubmissionTrigger(
                submission_id=submission.id,
                sparkgate_conn_id=self.sparkgate_conn_id,
                # The trigger watches the time, so that the submission is killed at its end.
                deadline=time.time() + limit.total_seconds() if limit else None,
                kills=self.kill_on_task_kill,
            ),
            method_name="execute_complete",
        )

    def _follow_log(self, client: Client, submission: Submission) -> None:
        """Shows the driver's log as it is written, over all attempts."""
        from sparkgate import NotFound, WaitTimeout

        attempt = submission.attempt
        while True:
            try:
                for line in client.logs(submission.id, follow=True, attempt=attempt):
                    self.log.info("%s", line)
            except NotFound as error:
                self.log.warning("%s", error)
            # The log ends shortly before the state changes.
            while not submission.refresh().has_ended and submission.attempt == attempt:
                try:
                    submission.wait(5)
                except WaitTimeout:
                    self.log.info("%s is still %s", submission.id, submission.state)
            if submission.has_ended:
                return
            attempt = submission.attempt
            self.log.info("attempt %d of %s", attempt, submission.id)

    def _ended(self, submission: Submission, context: Context) -> dict[str, Any]:
        if submission.succeeded:
            return outcome.result(submission)
        # This try has seen the failure: the next one submits again.
        _set_generation(context, _generation(context) + 1)
        if self._was_killed:
            raise AirflowException(f"{submission.id} was killed with the task")
        raise outcome.failed(submission, self.no_retry_on)


def _default_deferrable() -> bool:
    return bool(conf.getboolean("operators", "default_deferrable", fallback=False))


def _store(context: Context) -> Any:
    return context.get("task_state_store")


def _generation(context: Context) -> int:
    """Returns the number of the task's present submission."""
    store = _store(context)
    stored = store.get(_generation_key(context)) if store is not None else None
    return stored if isinstance(stored, int) else 1


def _set_generation(context: Context, generation: int) -> None:
    if (store := _store(context)) is not None:
        store.set(_generation_key(context), generation)


def _generation_key(context: Context) -> str:
    # A cleared task begins anew.
    ti: Any = context["ti"]
    return f"{GENERATION}_{ti.max_tries}"
