"""The idempotency key of a task's submission, by which a later try finds it again."""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from airflow.sdk import Context

#: The longest key that a gateway accepts, less the number of the generation.
_LONGEST = 240


def key_of(context: Context) -> str:
    """Returns the key of a task instance, without the number of its generation.

    - The start of the DAG run tells installations of Airflow with the same DAGs apart, and is another one after the whole
      run was cleared.
    - `max_tries` is another one after the task was cleared, and the same in all tries of Airflow's own retries.
    """
    ti: Any = context["ti"]
    started = context["dag_run"].start_date
    start = f"{started.timestamp():.6f}" if started else "-"
    key = f"airflow/{ti.dag_id}/{ti.task_id}/{ti.run_id}/{ti.map_index}/{start}/{ti.max_tries}"
    if len(key) <= _LONGEST and key.isascii() and key.isprintable():
        return key
    return f"airflow/{hashlib.sha256(key.encode()).hexdigest()}"


def labels_of(context: Context) -> dict[str, str]:
    """Returns the labels by which a task's submissions are found."""
    ti: Any = context["ti"]
    labels = {"airflow-dag": ti.dag_id, "airflow-task": ti.task_id, "airflow-run": ti.run_id}
    return {name: _label(value) for name, value in labels.items()}


def _label(text: str) -> str:
    """Returns a text as the value of a label of Kubernetes."""
    return re.sub(r"[^A-Za-z0-9._-]", "_", text)[:63].strip("._-")
