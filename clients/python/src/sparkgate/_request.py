"""The body of a submission, from the arguments of `submit`."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from datetime import timedelta
from typing import Any, TypedDict

from sparkgate.models import MaxRetries, NewSubmission

#: What can be the value of a Spark property or of an argument.
Scalar = str | int | float | bool
#: Seconds.
Seconds = float | timedelta


class Options(TypedDict, total=False):
    """The options of `submit` and `dry_run`. None is needed."""

    #: The class to run, for JVM applications.
    main_class: str | None
    #: Spark properties. Numbers and booleans become texts.
    conf: Mapping[str, Scalar] | None
    #: `spark.app.name`.
    name: str | None
    #: Your own id of the submission: refused if another submission of the tenant has it.
    client_id: str | None
    #: Labels to find submissions by, in Kubernetes' syntax.
    labels: Mapping[str, str] | None
    #: The retries after failures of the cluster, such as a lost node; `MaxRetries` also has those of the application.
    retries: int | MaxRetries | None
    #: Kill the submission if it isn't running this long after it was queued.
    start_timeout: Seconds | None
    #: Kill the submission if it is still running this long after it started.
    run_timeout: Seconds | None
    #: The time from SIGTERM to SIGKILL when the submission is killed.
    kill_grace: Seconds | None
    #: Refuse the request if a live submission of the same namespace that also set it has this name.
    unique_name: bool | None
    #: The Spark release or its line, such as `4.1`: one that the gateway serves.
    spark_version: str | None
    #: Environment variables of the driver. `SPARK_USER` is the owner.
    env: Mapping[str, str] | None
    #: The user that the application impersonates.
    proxy_user: str | None
    #: A pod as a mapping, a pod as YAML, or the name of one of the operator's templates.
    driver_pod_template: Mapping[str, Any] | str | None
    executor_pod_template: Mapping[str, Any] | str | None


_NAMES = set(Options.__annotations__)


def body(app: str | os.PathLike[str] | None, args: tuple[Scalar | os.PathLike[str], ...], options: Options) -> dict[str, Any]:
    """Returns the JSON of a request. Without an app, it is a patch of one."""
    if unknown := sorted(set(options) - _NAMES):
        raise TypeError(f"submit() has no options {', '.join(unknown)}: it has {', '.join(sorted(_NAMES))}")
    retries = options.get("retries")
    request = NewSubmission(
        app_resource=None if app is None else os.fspath(app),
        app_args=[_text(f"argument {number}", arg) for number, arg in enumerate(args, 1)] or None,
        main_class=options.get("main_class"),
        name=options.get("name"),
        client_id=options.get("client_id"),
        spark_properties=texts("conf", options.get("conf")),
        labels=texts("labels", options.get("labels")),
        environment_variables=texts("env", options.get("env")),
        max_retries=MaxRetries(infrastructure=retries) if isinstance(retries, int) else retries,
        start_timeout_seconds=whole_seconds(options.get("start_timeout")),
        run_timeout_seconds=whole_seconds(options.get("run_timeout")),
        kill_grace_seconds=whole_seconds(options.get("kill_grace")),
        unique_name=options.get("unique_name"),
        spark_version=options.get("spark_version"),
        proxy_user=options.get("proxy_user"),
        driver_pod_template=options.get("driver_pod_template"),
        executor_pod_template=options.get("executor_pod_template"),
    )
    return request.model_dump(mode="json", by_alias=True, exclude_none=True)


def patched(patch: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a merge patch that has the effect of the first and then of the second."""
    merged = dict(patch)
    for key, value in changes.items():
        before = merged.get(key)
        merged[key] = patched(before, value) if isinstance(before, Mapping) and isinstance(value, Mapping) else value
    return merged


def texts(option: str, values: Mapping[str, Scalar] | None) -> dict[str, str] | None:
    """Returns the values as the texts that Spark takes."""
    if values is None:
        return None
    return {str(key): _text(f"{option}[{key!r}]", value) for key, value in values.items()}


def _text(what: str, value: object) -> str:
    if isinstance(value, bool):
        # As Spark writes it.
        return "true" if value else "false"
    if isinstance(value, (str, int, float)):
        return str(value)
    if isinstance(value, os.PathLike):
        return str(os.fspath(value))
    raise TypeError(f"{what} is a {type(value).__name__}: expected a text, a number or a boolean")


def whole_seconds(time: Seconds | None) -> int | None:
    """Returns a time in seconds, rounded up."""
    if time is None:
        return None
    return math.ceil(time.total_seconds() if isinstance(time, timedelta) else time)


def seconds(time: Seconds | None) -> float | None:
    """Returns a time in seconds."""
    return time.total_seconds() if isinstance(time, timedelta) else time
