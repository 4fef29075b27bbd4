"""Jobs from submit to outcome, with both clients."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
from dev import Dev, until

from sparkgate import (
    ApiError,
    AsyncClient,
    Client,
    GatewayUnreachable,
    InvalidRequest,
    MaxRetries,
    NameTaken,
    NotFound,
    SubmissionFailed,
    SubmissionState,
    WaitTimeout,
)


def test_a_job_runs_to_its_end(client: Client, ends: str) -> None:
    job = client.submit(ends, 0, name="first", labels={"team": "data"}, conf={"spark.executor.instances": 1})
    assert (job.name, job.labels, job.has_ended) == ("first", {"team": "data"}, False)
    assert job.wait(timedelta(minutes=3), check=True) is job
    assert (job.state, job.exit_code, job.succeeded, job.failure) == (SubmissionState.FINISHED, 0, True, None)
    assert list(job.logs()) == ["ends with 0"]
    assert [attempt.attempt for attempt in job.list_attempts()] == [1]
    assert job.list_executors() == []
    assert {item["kind"] for item in job.manifest().items} >= {"Pod", "Service", "ConfigMap"}
    again = client.get(job.id)
    assert (again, again.finished_at) == (job, job.finished_at)


def test_a_job_of_real_spark_runs_to_its_end(client: Client) -> None:
    pi = client.submit("local:///opt/spark/examples/src/main/python/pi.py", 2, name="pi", conf={"spark.driver.memory": "512m"})
    assert pi.wait(180, check=True).succeeded
    assert any(line.startswith("Pi is roughly 3.") for line in pi.logs())


def test_a_failed_job_says_why(client: Client, ends: str) -> None:
    job = client.submit(ends, 3, name="fails")
    with pytest.raises(SubmissionFailed, match="APPLICATION_ERROR") as failed:
        job.wait(check=True)
    assert failed.value.submission is job
    assert job.failure is not None
    assert (job.failure.code, job.failure.class_, job.exit_code) == ("APPLICATION_ERROR", "application", 3)
    assert "ends with 3" in (job.failure.log_tail or "")


def test_a_wait_for_a_state_and_its_timeout(client: Client, waits: str, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    job = client.submit(waits, gate, 0)
    assert job.wait(state="running").state == "RUNNING"
    with pytest.raises(WaitTimeout, match="still RUNNING"):
        job.wait(1)
    assert issubclass(WaitTimeout, TimeoutError)
    with pytest.raises(InvalidRequest, match="PONDERING"):
        job.wait(state="PONDERING")
    gate.touch()
    assert job.wait().succeeded


def test_a_kill_is_repeatable_and_ends_the_job(client: Client, waits: str, tmp_path: Path) -> None:
    job = client.submit(waits, tmp_path / "never", 0, kill_grace=0)
    job.wait(state="RUNNING")
    assert job.kill().kill().state in ("KILLING", "KILLED")
    assert job.wait().state == "KILLED"
    assert job.failure is not None
    assert job.failure.code == "KILLED_ON_REQUEST"
    assert job.refresh().state == "KILLED"


def test_the_same_key_returns_the_same_submission(client: Client, ends: str) -> None:
    key = f"test/{uuid.uuid4()}"
    first = client.submit(ends, 0, idempotency_key=key)
    again = client.submit(ends, 0, idempotency_key=key)
    assert (again.id, again.is_replayed, first.is_replayed) == (first.id, True, False)
    assert client.submit(ends, 0).id != first.id
    with pytest.raises(InvalidRequest) as reused:
        client.submit(ends, 1, idempotency_key=key)
    assert (reused.value.code, reused.value.submission_id) == ("idempotency-key-reused", first.id)
    assert not reused.value.retryable


def test_a_rerun_is_the_same_with_changes(client: Client, ends: str) -> None:
    first = client.submit(ends, 3, name="first", labels={"team": "data", "tier": "1"}, env={"REGION": "eu"}).wait()
    again = first.rerun()
    assert (again.name, again.labels["sparkgate.dev/rerun-of"]) == ("first", first.id)
    assert again.wait().exit_code == 3
    changed = client.rerun(
        first.id,
        0,
        name="third",
        labels={"team": "ops"},
        patch={"labels": {"team": "lost", "tier": None}, "environmentVariables": {"REGION": None}},
    )
    assert changed.labels == {"team": "ops", "sparkgate.dev/rerun-of": first.id}
    assert (changed.name, changed.wait(check=True).exit_code) == ("third", 0)
    key = f"test/{uuid.uuid4()}"
    assert first.rerun(idempotency_key=key).id == first.rerun(idempotency_key=key).id
    with pytest.raises(NotFound):
        client.rerun("driver-20260101000000-9999")
    with pytest.raises(TypeError, match="no options nme"):
        first.rerun(nme="x")


def test_options_reach_the_gateway(client: Client, waits: str, tmp_path: Path) -> None:
    job = client.submit(
        waits,
        tmp_path / "never",
        0,
        name="options",
        unique_name=True,
        start_timeout=timedelta(minutes=5),
        run_timeout=3600,
        kill_grace=0,
        retries=MaxRetries(infrastructure=2, application=1),
        env={"SPARK_USER": "alice", "REGION": "eu"},
    )
    assert job.limits is not None
    assert (job.limits.start_seconds, job.limits.run_seconds, job.limits.kill_grace_seconds) == (300, 3600, 0)
    assert job.retries == MaxRetries(infrastructure=2, application=1)
    assert job.owner == "alice"
    with pytest.raises(NameTaken) as taken:
        client.submit(waits, tmp_path / "never", 0, name="options", unique_name=True)
    assert taken.value.submission_id == job.id
    job.kill().wait()


def test_an_uploaded_application_runs_with_its_modules(client: Client, tmp_path: Path) -> None:
    application, module = tmp_path / "the job.py", tmp_path / "greetings.py"
    application.write_text("import greetings\nprint(greetings.TEXT)\n")
    module.write_text("TEXT = 'hello from the module'\n")
    uri = client.upload(application)
    assert uri.startswith("sparkgate-file:/")
    assert uri.endswith("/the%20job.py")
    assert client.request("GET", f"/v1/files/{uri.split('/')[1]}") == application.read_bytes()

    async def main() -> str:
        async with AsyncClient(client.url, environ={}) as other:
            assert await other.upload(application) == uri
            return await other.upload(module)

    job = client.submit(uri, conf={"spark.submit.pyFiles": asyncio.run(main())})
    assert job.wait(180, check=True).succeeded
    assert "hello from the module" in list(job.logs())
    with pytest.raises(IsADirectoryError):
        client.upload(tmp_path)


def test_a_dry_run_stores_nothing(client: Client, ends: str, caplog: pytest.LogCaptureFixture) -> None:
    plan = client.dry_run(ends, 0, name="dry", conf={"spark.executor.instnces": 2}, retries=1)
    assert plan.submission.retries == MaxRetries(infrastructure=1, application=0)
    assert any("spark.executor.instances" in warning for warning in plan.warnings or [])
    assert list(client.list(name="dry")) == []
    client.submit(ends, 0, name="misspelt", conf={"spark.executor.instnces": 2})
    assert "did you mean spark.executor.instances?" in caplog.text


def test_lists_are_read_page_by_page(client: Client, ends: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sparkgate._calls._PAGE", 3)
    label = {"list": uuid.uuid4().hex}
    begun = datetime.now(timezone.utc) - timedelta(minutes=1)
    ids = [client.submit(ends, 0, name=f"list-{number}", labels=label).id for number in range(8)]
    found = [job.id for job in client.list(labels=label, created_after=begun)]
    assert found == ids[::-1]
    assert [job.id for job in client.list(labels=label, name="list-", limit=4)] == ids[:3:-1]
    narrowed = client.list(labels=label, name_contains="IST-7", failure_code=["QUEUED", "STARTING"], principal="nobody:here")
    assert list(narrowed) == []
    assert [job.id for job in client.list(labels=label, name_contains="IST-7")] == ids[7:]
    assert list(client.list(labels=label, created_before=begun)) == []
    for job in client.list(labels=label, state=["QUEUED", "PENDING", "RUNNING"]):
        job.kill()
    with pytest.raises(ValueError, match="time zone"):
        next(client.list(created_after=datetime(2026, 1, 2)))


@pytest.mark.parametrize(
    ("submit", "error", "says"),
    [
        (
            lambda client: client.submit("local:///app.py", conf={"spark.driver.memory": "much"}),
            InvalidRequest,
            "spark.driver.memory",
        ),
        (lambda client: client.submit("local:///app.py", labels={"-": "x"}), InvalidRequest, "#/labels/-"),
        (lambda client: client.submit("local:///app.py", idempotency_key="ü"), ValueError, "ascii"),
        (lambda client: client.submit("local:///app.py", idempotency_key=""), InvalidRequest, "[Kk]ey"),
        (lambda client: client.submit("local:///app.py", conf={"spark.x": None}), TypeError, "conf\\['spark.x'\\] is a NoneType"),
        (lambda client: client.submit("local:///app.py", ["a"]), TypeError, "argument 1 is a list"),
        (lambda client: client.submit("local:///app.py", nme="x"), TypeError, "no options nme"),
        (lambda client: client.get("driver-1"), NotFound, "There is no such submission"),
        (lambda client: client.get("create"), ValueError, "not the id of a submission"),
        (lambda client: next(client.list(state="PONDERING")), InvalidRequest, "state"),
        (lambda client: next(client.events(after=10**15)), InvalidRequest, "cursor"),
    ],
)
def test_bad_input_is_refused(client: Client, submit: Callable[[Client], object], error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says) as raised:
        submit(client)
    if isinstance(raised.value, ApiError):
        assert raised.value.code
        assert raised.value.request_id
        assert raised.value.type == f"https://sparkgate.dev/problems/{raised.value.code}"


def test_requests_without_a_method_of_their_own(client: Client) -> None:
    assert b'"openapi"' in client.request("GET", "/v1/openapi.json")
    assert client.me().subject == "anonymous:anonymous"


def test_logs_are_followed(client: Client, waits: str, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    gate.touch()
    gate.with_suffix(".more").touch()
    job = client.submit(waits, gate, 20)
    assert list(job.logs(follow=True)) == [f"line {number}" for number in range(20)]
    assert list(job.logs(tail=2)) == ["line 18", "line 19"]
    timed = list(job.logs(follow=True, timestamps=True))
    assert all(datetime.fromisoformat(line[:19]) and line.endswith(f"Z line {number}") for number, line in enumerate(timed))
    assert list(job.logs(since=datetime.now(timezone.utc) + timedelta(days=1))) == []


def test_events_of_a_submission_and_of_all(client: Client, ends: str) -> None:
    label = {"events": uuid.uuid4().hex}
    job = client.submit(ends, 0, labels=label)
    events = list(job.events())
    states = [event.state.value for event in events]
    assert (states[0], states[-1]) == ("QUEUED", "FINISHED")
    assert list(job.events()) == events
    first = events[0].sequence
    assert first is not None
    assert list(job.events(after=first)) == events[1:]
    followed = client.events(after=first, labels=label)
    assert [next(followed) for _ in events[1:]] == events[1:]
    followed.close()


def test_the_asynchronous_client_does_the_same(dev: Dev, ends: str, waits: str, tmp_path: Path) -> None:
    async def main() -> None:
        async with AsyncClient(dev.url, environ={}) as client:
            jobs = await asyncio.gather(*(client.submit(ends, code, name="async") for code in (0, 0, 5)))
            await asyncio.gather(*(job.wait(180) for job in jobs))
            assert [job.exit_code for job in jobs] == [0, 0, 5]
            assert [line async for line in jobs[0].logs(follow=True)] == ["ends with 0"]
            assert [event.state.value async for event in jobs[2].events()][-1] == "FAILED"
            assert len([job async for job in client.list(name="async", limit=2)]) == 2
            again = await jobs[2].rerun(0)
            assert (await again.wait(180)).exit_code == 0
            killed = await client.submit(waits, tmp_path / "never", 0, kill_grace=0)
            await killed.kill()
            with pytest.raises(SubmissionFailed):
                await killed.wait(check=True)
            with pytest.raises(NotFound):
                await client.get("driver-1")
            # A stream that is abandoned is closed.
            async for event in client.events(after=0):
                assert event.sequence
                break

    asyncio.run(main())


def kill_and_restart(dev: Dev) -> None:
    dev.kill_dash_nine()
    dev.start()


def test_wait_and_logs_go_on_after_a_killed_gateway(dev: Dev, client: Client, waits: str, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    job = client.submit(waits, gate, 2000)
    lines = job.logs(follow=True)
    read = [next(lines) for _ in range(100)]
    dev.kill_dash_nine()
    gate.with_suffix(".more").touch()

    async def wait() -> str:
        async with AsyncClient(dev.url, environ={}) as patient:
            submission = await patient.get(job.id)
            waiting = asyncio.create_task(submission.wait(180))
            await asyncio.to_thread(kill_and_restart, dev)
            gate.touch()
            return (await waiting).state.value

    dev.start()
    read += [next(lines) for _ in range(1200)]
    assert asyncio.run(wait()) == "FINISHED"
    read += list(lines)
    assert read == [f"line {number}" for number in range(2000)]
    assert job.wait(check=True).succeeded


def test_events_go_on_after_a_killed_gateway(dev: Dev, client: Client, ends: str) -> None:
    label = {"events": uuid.uuid4().hex}
    events = client.events(after=0, labels=label)
    first = client.submit(ends, 0, labels=label)
    assert next(events).submission_id == first.id
    first.wait()
    dev.kill_dash_nine()
    dev.start()
    second = client.submit(ends, 0, labels=label)
    second.wait()
    seen = []
    while not seen or seen[-1].submission_id != second.id or seen[-1].state != "FINISHED":
        seen.append(next(events))
    sequences = [event.sequence or 0 for event in seen]
    assert sequences == sorted(set(sequences))
    recorded = [*list(first.events())[1:], *second.events()]
    assert seen == recorded


def test_a_submit_survives_a_restart(dev: Dev, ends: str) -> None:
    dev.kill_dash_nine()
    dev.begin()
    with Client(dev.url, environ={}, retry_seconds=120) as client:
        job = client.submit(ends, 0, name="patient")
        assert [found.id for found in client.list(name="patient")] == [job.id]
        until("the job has ended", lambda: job.refresh().has_ended)


def test_a_wait_ends_in_time_if_the_gateway_stays_away(dev: Dev, client: Client, waits: str, tmp_path: Path) -> None:
    job = client.submit(waits, tmp_path / "never", 0, kill_grace=0)
    dev.kill_dash_nine()
    with pytest.raises(GatewayUnreachable) as unreachable:
        job.wait(0.1)
    assert unreachable.value.retryable
    dev.start()
    with ThreadPoolExecutor() as threads:
        waiting = threads.submit(job.wait, 4)
        dev.kill_dash_nine()
        # The latter if not even the first response came before the kill.
        assert isinstance(waiting.exception(), (WaitTimeout, GatewayUnreachable))
    dev.start()
    job.kill()
