"""Runs a job to its end and kills another, with nothing but the generated client."""

import sys

from sparkgate_client import Client
from sparkgate_client.api.submissions import (
    create_submission_resource,
    get_outcome,
    kill_submission_resource,
    list_submissions,
    wait_for_submission,
)
from sparkgate_client.models import (
    NewSubmission,
    NewSubmissionLabels,
    Problem,
    Submission,
    SubmissionList,
    SubmissionState,
)


def submit(client: Client, name: str, key: str) -> Submission:
    labels = NewSubmissionLabels()
    labels["team"] = "data"
    job = NewSubmission(
        name=name,
        app_resource="local:///opt/spark/examples/src/main/python/pi.py",
        app_args=["10"],
        labels=labels,
    )
    submission = create_submission_resource.sync(client=client, body=job, idempotency_key=key)
    assert isinstance(submission, Submission), submission
    return submission


def end_of(client: Client, submission: Submission) -> Submission:
    while submission.state not in (SubmissionState.FINISHED, SubmissionState.FAILED, SubmissionState.KILLED):
        waited = wait_for_submission.sync(submission.id, client=client, timeout_seconds=20)
        assert isinstance(waited, Submission), waited
        submission = waited
    return submission


client = Client(base_url=sys.argv[1])
first = submit(client, "generated", "generated-1")
assert submit(client, "generated", "generated-1").id == first.id
assert end_of(client, first).state == SubmissionState.FINISHED
outcome = get_outcome.sync(first.id, client=client)
assert isinstance(outcome, Submission) and outcome.exit_code == 0, outcome

second = submit(client, "generated", "generated-2")
killed = kill_submission_resource.sync(second.id, client=client)
assert isinstance(killed, Submission) and killed.state in (SubmissionState.KILLING, SubmissionState.KILLED), killed
assert end_of(client, second).state == SubmissionState.KILLED
failure = get_outcome.sync_detailed(second.id, client=client)
assert failure.status_code == 424 and isinstance(failure.parsed, Problem), failure

page = list_submissions.sync(client=client, label=["team=data"], name="generated")
assert isinstance(page, SubmissionList), page
assert [item.id for item in page.items] == [second.id, first.id], page
print("the job ran")
