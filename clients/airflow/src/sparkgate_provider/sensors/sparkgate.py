"""Waits for submissions."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseSensorOperator, PokeReturnValue, conf
from airflow.sdk.exceptions import AirflowException, AirflowFailException, AirflowSensorTimeout, AirflowSkipException

from sparkgate_provider import outcome
from sparkgate_provider.hooks.sparkgate import SparkgateHook
from sparkgate_provider.triggers.sparkgate import SparkgateSubmissionTrigger

if TYPE_CHECKING:
    from airflow.sdk import Context

    from sparkgate import Submission


class SparkgateSubmissionSensor(BaseSensorOperator):
    """Waits until a submission has ended, and fails if it did not succeed: another try can't change that.

    :param submission_id: the submission's id (templated)
    :param deferrable: wait in the triggerer instead of a worker
    :param sparkgate_conn_id: the id of the connection (templated)
    """

    template_fields: Sequence[str] = ("submission_id", "sparkgate_conn_id")
    ui_color = "#f5e3cf"

    def __init__(
        self,
        *,
        submission_id: str,
        deferrable: bool | None = None,
        sparkgate_conn_id: str = SparkgateHook.default_conn_name,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.submission_id = submission_id
        default = conf.getboolean("operators", "default_deferrable", fallback=False)
        self.deferrable = bool(default) if deferrable is None else deferrable
        self.sparkgate_conn_id = sparkgate_conn_id

    @cached_property
    def hook(self) -> SparkgateHook:
        """The connection to the gateway."""
        return SparkgateHook(self.sparkgate_conn_id)

    def execute(self, context: Context) -> Any:
        """Waits in this worker, or defers."""
        if not self.deferrable:
            return super().execute(context)
        with self._soft():
            waited = self.poke(context)
        if waited.is_done:
            return waited.xcom_value
        # The trigger watches the time: a sensor that is out of time fails as one, whichever way it waits.
        self.defer(
            trigger=SparkgateSubmissionTrigger(self.submission_id, self.sparkgate_conn_id, time.time() + self.timeout),
            method_name="execute_complete",
        )

    def poke(self, context: Context) -> PokeReturnValue:
        """Asks for the submission once."""
        from sparkgate import SparkgateError

        try:
            with self.hook.get_conn() as client:
                submission = client.get(self.submission_id)
        except SparkgateError as error:
            raise outcome.refused(error) from error
        self.log.info("%s is %s", submission.id, submission.state)
        return PokeReturnValue(is_done=submission.has_ended, xcom_value=_result(submission) if submission.has_ended else None)

    def execute_complete(self, context: Context, event: dict[str, Any]) -> Any:
        """Takes over when the trigger has fired."""
        with self._soft():
            if event["status"] == "timeout":
                raise AirflowSensorTimeout(f"Sensor has timed out: {event['message']}")
            if event["status"] == "error":
                raise AirflowException(event["message"])
            return self.poke(context).xcom_value

    @contextmanager
    def _soft(self) -> Iterator[None]:
        """Skips the task instead of failing it, if it is to do so. A sensor that isn't deferred does this by itself."""
        try:
            yield
        except (AirflowSensorTimeout, AirflowFailException) as error:
            if self.soft_fail or self.never_fail:
                raise AirflowSkipException(f"Skipping due to soft_fail or never_fail: {error}") from error
            raise


def _result(submission: Submission) -> dict[str, Any]:
    if submission.succeeded:
        return outcome.result(submission)
    # A sensor that is repeated sees the same end.
    raise AirflowFailException(str(outcome.failed(submission, ())))
