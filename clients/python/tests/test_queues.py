"""Submissions that wait, and their places in queues."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Iterator

import pytest
from dev import Dev, until

from sparkgate import AsyncClient, Client, InvalidRequest

QUEUES = "queues: {day: {priority: {max: 9}}, night: {priority: {max: 5}}}\n"


@pytest.fixture(scope="module")
def closed() -> Iterator[Dev]:
    """A gateway with two queues, which admit nothing."""
    dev = Dev("--require-token")
    try:
        access = dev.dir / "dev/access.yaml"
        access.write_text(access.read_text().replace("['*']", "['*'], defaultQueue: day") + QUEUES)
        with Client(dev.url, token=dev.token, environ={}) as client:
            until("the gateway has read its access file", lambda: len(client.list_queues()) == 2)
            for queue in client.list_queues():
                client.request("PUT", f"/v1/queues/{queue.name}/state", json={"state": "paused"})
        yield dev
    finally:
        dev.stop()


@pytest.fixture
def queued(closed: Dev) -> Iterator[Client]:
    with Client(closed.url, token=closed.token, environ={}) as client:
        yield client


def test_a_submission_is_held_moved_and_released(queued: Client) -> None:
    job = queued.submit("local:///none.py")
    assert job.hold("no data").waiting is not None
    assert (job.queue, job.waiting.code) == ("day", "HELD")
    assert job.refresh().queue_place.held.reason == "no data"
    assert (job.requeue("night", 5).queue, job.priority) == ("night", 5)
    assert job.release().waiting.code == "QUEUED"
    assert [found.id for found in queued.list(queue="night", tenant="default")] == [job.id]
    job.kill()


def test_all_that_match_are_held_moved_and_released(closed: Dev, queued: Client) -> None:
    label = {"run": str(uuid.uuid4())}
    jobs = [queued.submit("local:///none.py", labels=label, conf={"spark.sparkgate.priority": priority}) for priority in (0, 9)]
    ids = [job.id for job in jobs]
    held = queued.hold_all(labels=label, queue="day", reason="no data")
    assert (held.changed, held.ids, held.refused, held.next) == (2, ids, 0, None)
    assert queued.hold_all(labels=label).changed == 0
    moved = queued.requeue_all(to="night", priority=5, labels=label, state="QUEUED")
    assert moved.ids == ids
    refused = queued.requeue_all(priority=6, labels=label)
    assert (refused.changed, refused.refusals[0].id) == (0, ids[0])
    assert "6 is more than queue night permits" in refused.refusals[0].reason

    async def main() -> int:
        async with AsyncClient(closed.url, token=closed.token, environ={}) as client:
            return (await client.release_all(labels=label)).changed

    assert asyncio.run(main()) == 2
    with pytest.raises(InvalidRequest, match="selects all submissions"):
        queued.release_all()
    for job in jobs:
        job.kill()
