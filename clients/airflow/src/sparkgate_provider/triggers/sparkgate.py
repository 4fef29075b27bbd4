"""Waits for a submission in the triggerer."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from typing import Any

from airflow.triggers.base import BaseTrigger, TriggerEvent

from sparkgate_provider.hooks.sparkgate import SparkgateHook


class SparkgateSubmissionTrigger(BaseTrigger):
    """Fires when a submission has ended.

    The event has the `submission_id` and a `status`: `ended`, `timeout`, or `error` with a `message`.

    :param submission_id: the submission's id
    :param sparkgate_conn_id: the id of the connection
    :param deadline: the time at which the wait is given up, in seconds since 1970
    :param kills: whether the submission is killed when a user clears or marks the deferred task
    """

    def __init__(
        self,
        submission_id: str,
        sparkgate_conn_id: str = SparkgateHook.default_conn_name,
        deadline: float | None = None,
        kills: bool = False,
    ) -> None:
        super().__init__()
        self.submission_id = submission_id
        self.sparkgate_conn_id = sparkgate_conn_id
        self.deadline = deadline
        self.kills = kills

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Returns the arguments of this trigger."""
        return (
            "sparkgate_provider.triggers.sparkgate.SparkgateSubmissionTrigger",
            {
                "submission_id": self.submission_id,
                "sparkgate_conn_id": self.sparkgate_conn_id,
                "deadline": self.deadline,
                "kills": self.kills,
            },
        )

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Waits by long polls, also while the gateway restarts."""
        from sparkgate import SparkgateError, WaitTimeout

        event: dict[str, Any] = {"submission_id": self.submission_id, "status": "ended"}
        try:
            async with await SparkgateHook(self.sparkgate_conn_id).get_async_conn() as client:
                left = None if self.deadline is None else max(0.0, self.deadline - time.time())
                submission = await client.get(self.submission_id)
                await submission.wait(left)
                self.log.info("%s is %s", submission.id, submission.state)
        except WaitTimeout as error:
            event.update(status="timeout", message=str(error))
        except (SparkgateError, ValueError) as error:
            event.update(status="error", message=str(error))
        yield TriggerEvent(event)

    async def on_kill(self) -> None:
        """Kills the submission."""
        if not self.kills:
            return
        async with await SparkgateHook(self.sparkgate_conn_id).get_async_conn(retry_seconds=20) as client:
            await (await client.get(self.submission_id)).kill()
            self.log.info("the task was cleared or marked by a user: killing %s", self.submission_id)
