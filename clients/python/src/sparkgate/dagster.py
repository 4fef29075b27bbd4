"""Dagster Pipes: a client that runs an asset's or op's Spark job through a gateway. Needs `sparkgate[dagster]`."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import re
import sys
import tempfile
import zipfile
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias
from weakref import WeakKeyDictionary

import dagster_pipes
from dagster import (
    AssetExecutionContext,
    DagsterExecutionInterruptedError,
    Failure,
    MetadataValue,
    OpExecutionContext,
    PipesClient,
    PipesClientCompletedInvocation,
    PipesContextInjector,
    PipesEnvContextInjector,
    PipesMessageHandler,
    PipesMessageReader,
    open_pipes_session,
)
from dagster._core.definitions.resource_annotation import TreatAsResourceParam
from dagster._core.errors import DagsterInvalidPropertyError
from typing_extensions import Unpack

from sparkgate._local import uploaded
from sparkgate._remedies import REMEDIES
from sparkgate._request import Options, Scalar
from sparkgate.client import Client, Submission
from sparkgate.errors import InvalidRequest, NameTaken, NotFound, SparkgateError, WaitTimeout

__all__ = ["PipesSparkgateClient", "PipesSparkgateLogMessageReader"]

Context: TypeAlias = OpExecutionContext | AssetExecutionContext

#: Failures that another try doesn't mend: the request has to be changed, or a user wanted the end.
NO_RETRY_ON = ("image", "configuration", "cancelled")
#: The tags of a run that continues a failed one.
_CONTINUES = ("dagster/is_resume_retry", "dagster/is_asset_resume_retry")
#: The messages that are handled when they arrive. The others are results, which count if their attempt is the last one.
_LIVE = {"opened", "log", "log_external_stream"}
#: The longest idempotency key that a gateway accepts, less the numbers at its end.
_LONGEST = 230


class PipesSparkgateLogMessageReader(PipesMessageReader):
    """Reads messages from the driver's log. All other lines go to the standard output, which Dagster keeps."""

    def __init__(self) -> None:
        self._handler: PipesMessageHandler | None = None

    @contextmanager
    def read_messages(self, handler: PipesMessageHandler) -> Iterator[Mapping[str, Any]]:
        """Tells the application to write messages to its standard error, in one piece each."""
        self._handler = handler
        try:
            writer = dagster_pipes.PipesDefaultMessageWriter
            yield {writer.STDIO_KEY: writer.STDERR}
        finally:
            self._handler = None

    def follow(self, client: Client, submission: Submission, log: logging.Logger) -> None:
        """Reads the log of each attempt until the submission has ended."""
        attempt = submission.attempt
        while True:
            results = self._attempt(client, submission.id, attempt, log)
            # The log ends shortly before the state changes.
            while not submission.refresh().has_ended and submission.attempt == attempt:
                try:
                    submission.wait(5)
                except WaitTimeout:
                    log.info("[pipes] %s is still %s", submission.id, submission.state.value)
            if submission.attempt == attempt:
                for message in results:
                    self._handle(message)
                return
            attempt += 1
            log.info("[pipes] attempt %d of %s: the results of the one before don't count", attempt, submission.id)

    def _attempt(self, client: Client, id: str, attempt: int, log: logging.Logger) -> list[dict[str, Any]]:
        """Reads the log of an attempt. Returns the messages that are not handled yet."""
        results = []
        try:
            for line in client.logs(id, follow=True, attempt=attempt):
                message = _message(line)
                if message is None:
                    print(line, flush=True)
                elif message.get("method") in _LIVE:
                    self._handle(message)
                else:
                    results.append(message)
        except NotFound as error:
            log.warning("[pipes] there are no messages of attempt %d, because its log can't be read: %s", attempt, error)
        return results

    def _handle(self, message: dict[str, Any]) -> None:
        if self._handler is None:
            raise RuntimeError("messages can be read within a Pipes session only")
        try:
            self._handler.handle_message(message)
        except Exception:
            self._handler.report_pipes_framework_exception(f"a message of the driver: {message}", sys.exc_info())

    def no_messages_debug_text(self) -> str:
        """Returns where messages were expected."""
        return (
            "Attempted to read messages from the driver's log. The application has to call `open_dagster_pipes()` in the driver, "
            "with the defaults for `context_loader` and `message_writer`."
        )


class PipesSparkgateClient(PipesClient, TreatAsResourceParam):
    """Runs Spark applications through a gateway, which report to Dagster by Dagster Pipes.

    `connect` makes a client for each run; by default it finds the gateway and the token as the command line does. Another
    `message_reader`, such as one of S3, takes the place of the driver's log.

    With `forward_termination`, a run that is terminated kills its submission. Failures whose class or code is in `no_retry_on`
    end the step without the retries of its policy. With `upload_dagster_pipes`, drivers get the installed `dagster_pipes`, which
    images then needn't have. `console_url` is the gateway's URL for browsers, if it is another one.
    """

    def __init__(
        self,
        connect: Callable[[], Client] = Client,
        *,
        context_injector: PipesContextInjector | None = None,
        message_reader: PipesMessageReader | None = None,
        forward_termination: bool = True,
        no_retry_on: Collection[str] = NO_RETRY_ON,
        upload_dagster_pipes: bool = False,
        console_url: str | None = None,
    ) -> None:
        self._connect = connect
        self._context_injector = context_injector or PipesEnvContextInjector()
        self._message_reader = message_reader
        self._forward_termination = forward_termination
        self._no_retry_on = frozenset(no_retry_on)
        self._upload_dagster_pipes = upload_dagster_pipes
        self._console_url = console_url
        #: How many applications each step has run.
        self._runs: WeakKeyDictionary[object, int] = WeakKeyDictionary()

    def run(
        self,
        *,
        context: Context,
        app: str | os.PathLike[str],
        args: Sequence[Scalar | os.PathLike[str]] = (),
        py_files: Sequence[str | os.PathLike[str]] = (),
        extras: Mapping[str, Any] | None = None,
        **options: Unpack[Options],
    ) -> PipesClientCompletedInvocation:
        """Submits an application, waits for its end, and returns what it has reported.

        `app` and `py_files` are URIs that the driver can read, or files on this machine, which are uploaded. `extras` are for the
        application. The other arguments are those of `Client.submit`.

        A step that is tried again, resumed, or executed again from its failure follows the submission of the earlier try if that
        one runs or has succeeded, and submits again otherwise. Raises `Failure` if the submission failed or is refused.
        """
        submission: Submission | None = None
        # Runs in several threads have a reader each.
        reader = self._message_reader or PipesSparkgateLogMessageReader()
        with (
            open_pipes_session(
                context=context,
                extras=dict(extras or {}),
                context_injector=self._context_injector,
                message_reader=reader,
            ) as session,
            self._connect() as client,
        ):
            try:
                options = self._options(client, context, options, session.get_bootstrap_env_vars(), py_files)
                app = uploaded(client, app, _namespace(options))
                submission = self._find_or_submit(client, context, app, args, options)
                context.log.info("[pipes] %s: %s", submission.id, self._link(client, submission))
                if isinstance(reader, PipesSparkgateLogMessageReader):
                    reader.follow(client, submission, context.log)
                submission.wait()
            except SparkgateError as error:
                # A submission with the same name will end.
                may_pass = error.retryable or isinstance(error, NameTaken)
                raise Failure(str(error), allow_retries=may_pass) from error
            except (DagsterExecutionInterruptedError, KeyboardInterrupt):
                if submission is not None and self._forward_termination:
                    self._kill(context, submission.id)
                raise
            metadata = {
                "Sparkgate submission": MetadataValue.text(submission.id),
                "Sparkgate console": MetadataValue.url(self._link(client, submission)),
            }
        if not submission.succeeded:
            raise self._failed(submission, metadata)
        return PipesClientCompletedInvocation(session, metadata=metadata)

    def _options(
        self,
        client: Client,
        context: Context,
        options: Options,
        bootstrap: Mapping[str, str],
        py_files: Sequence[str | os.PathLike[str]],
    ) -> Options:
        """Returns the options of the submission, with the parameters of the session and the modules."""
        conf, namespace = dict(options.get("conf") or {}), _namespace(options)
        modules = [str(conf["spark.submit.pyFiles"])] if conf.get("spark.submit.pyFiles") else []
        modules += [uploaded(client, file, namespace) for file in py_files]
        if self._upload_dagster_pipes:
            modules.append(_upload_dagster_pipes(client, namespace))
        if modules:
            conf["spark.submit.pyFiles"] = ",".join(modules)
        step = _step(context)
        labels = _labels({"dagster-run": context.run.run_id, "dagster-step": step.step.key}) if step else {}
        return {
            **options,
            "conf": conf,
            "name": options.get("name") or (step.step.key if step else None),
            "env": {**(options.get("env") or {}), **bootstrap},
            "labels": {**labels, **(options.get("labels") or {})},
        }

    def _find_or_submit(
        self, client: Client, context: Context, app: str, args: Sequence[Scalar | os.PathLike[str]], options: Options
    ) -> Submission:
        key = self._key(context)
        if key is None:
            return client.submit(app, *args, **options)
        generation = 1
        while True:
            try:
                submission = client.submit(app, *args, idempotency_key=f"{key}/{generation}", **options)
                if not submission.is_replayed:
                    return submission
            except InvalidRequest as error:
                if error.code != "idempotency-key-reused" or not error.submission_id:
                    raise
                # The context of another try has another number, and the code may have changed.
                submission = client.get(error.submission_id)
            if submission.state.value == "KILLING":
                submission.wait()
            if not submission.has_ended or submission.succeeded:
                context.log.info("[pipes] following the submission of an earlier try: it is %s", submission.state.value)
                return submission
            context.log.info("[pipes] %s of an earlier try is %s: submitting again", submission.id, submission.state.value)
            generation += 1

    def _key(self, context: Context) -> str | None:
        """Returns the idempotency key of the application, without the number of its generation."""
        step = _step(context)
        if step is None:
            return None
        number = self._runs.get(step, 0) + 1
        self._runs[step] = number
        run = context.run
        while run.parent_run_id and any(run.tags.get(tag) == "true" for tag in _CONTINUES):
            parent = context.instance.get_run_by_id(run.parent_run_id)
            if parent is None:
                break
            run = parent
        key = f"dagster/{run.run_id}/{step.step.key}"
        if len(key) > _LONGEST or not key.isascii() or not key.isprintable():
            key = f"dagster/{hashlib.sha256(key.encode()).hexdigest()}"
        return f"{key}/{number}"

    def _kill(self, context: Context, id: str) -> None:
        context.log.info("[pipes] the run is being terminated: killing %s", id)
        # The client of the interrupted call can't be used here.
        with self._connect() as client:
            client.get(id).kill()

    def _link(self, client: Client, submission: Submission) -> str:
        return f"{(self._console_url or client.url).rstrip('/')}/console/submissions/{submission.id}"

    def _failed(self, submission: Submission, metadata: Mapping[str, MetadataValue]) -> Failure:
        """Returns the exception of a submission that has not succeeded."""
        text, failure = f"{submission.id} is {submission.state.value}", submission.failure
        if failure is None:
            return Failure(text, metadata=metadata)
        code, class_ = failure.code.value, failure.class_.value
        text += f": {code} ({class_}): {failure.message}"
        if remedy := REMEDIES.get(code):
            text += f"\nWhat to do: {remedy}"
        details = {"Failure": code, "Failure class": class_, "Exit code": failure.exit_code, "End of the log": failure.log_tail}
        known = {name: value for name, value in details.items() if value is not None}
        return Failure(text, metadata={**metadata, **known}, allow_retries=not self._no_retry_on & {code, class_})


def _message(line: str) -> dict[str, Any] | None:
    """Returns the message of a line of the log, if it is one."""
    if dagster_pipes.PIPES_PROTOCOL_VERSION_FIELD not in line:
        return None
    try:
        message = json.loads(line)
    except ValueError:
        return None
    is_message = isinstance(message, dict) and dagster_pipes.PIPES_PROTOCOL_VERSION_FIELD in message
    return message if is_message else None


def _namespace(options: Options) -> str | None:
    namespace = (options.get("conf") or {}).get("spark.kubernetes.namespace")
    return None if namespace is None else str(namespace)


def _step(context: Context) -> Any:
    """Returns the step, if there is one: an asset that is called as a function has none."""
    try:
        return context.get_step_execution_context()
    except DagsterInvalidPropertyError:
        return None


def _labels(labels: Mapping[str, str]) -> dict[str, str]:
    """Returns texts as values of Kubernetes' labels."""
    return {name: re.sub(r"[^A-Za-z0-9._-]", "_", value)[:63].strip("._-") for name, value in labels.items()}


def _upload_dagster_pipes(client: Client, namespace: str | None) -> str:
    """Uploads the installed `dagster_pipes`, as an archive that is the same each time."""
    package = Path(dagster_pipes.__file__).parent
    with tempfile.TemporaryDirectory() as folder:
        archive = Path(folder) / "dagster_pipes.zip"
        with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as content:
            for file in sorted(package.rglob("*.py")):
                name = str(file.relative_to(package.parent))
                content.writestr(zipfile.ZipInfo(name), file.read_bytes(), zipfile.ZIP_DEFLATED)
        return client.upload(archive, namespace=namespace)
