"""What the end of a submission means for a task."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from airflow.sdk.exceptions import AirflowException, AirflowFailException

if TYPE_CHECKING:
    from sparkgate import SparkgateError
    from sparkgate.models import Submission

#: Failures that another try doesn't mend: the request has to be changed, or a user wanted the end.
NO_RETRY_ON = ("image", "configuration", "cancelled")


def result(submission: Submission) -> dict[str, Any]:
    """Returns the XCom of a submission."""
    return {
        "submission_id": submission.id,
        "state": submission.state.value,
        "exit_code": submission.exit_code,
        "attempt": submission.attempt,
        "failure": submission.failure.code.value if submission.failure else None,
    }


def failed(submission: Submission, no_retry_on: Collection[str]) -> AirflowException:
    """Returns the exception of a submission that has not succeeded; one of them ends the task without further tries."""
    failure = submission.failure
    text = f"{submission.id} is {submission.state.value}"
    if failure is None:
        return AirflowException(text)
    text += f": {failure.code.value} ({failure.class_.value}): {failure.message}"
    for event in failure.events or []:
        text += f"\n  {event.reason}: {event.message}"
    is_final = bool({failure.class_.value, failure.code.value} & set(no_retry_on))
    return AirflowFailException(text) if is_final else AirflowException(text)


def refused(error: SparkgateError) -> AirflowException:
    """Returns the exception of a call that has failed; a refusal ends the task without further tries."""
    from sparkgate import NameTaken

    # A submission with the same name will end.
    may_pass = error.retryable or isinstance(error, NameTaken)
    return AirflowException(str(error)) if may_pass else AirflowFailException(str(error))
