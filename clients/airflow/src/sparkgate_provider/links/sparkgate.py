"""The link from a task to its submission."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow.sdk import BaseOperatorLink
from airflow.sdk.execution_time.xcom import XCom

if TYPE_CHECKING:
    from airflow.sdk import BaseOperator
    from airflow.sdk.types import TaskInstanceKey


class SparkgateSubmissionLink(BaseOperatorLink):
    """Shows the submission at the gateway."""

    name = "Submission"

    def get_link(self, operator: BaseOperator, *, ti_key: TaskInstanceKey) -> str:
        """Returns the URL that the operator has stored; empty if it has not submitted yet."""
        link = XCom.get_value(ti_key=ti_key, key=self.xcom_key)
        return str(link) if link else ""
