use serde_json::json;

use super::*;

fn pod() -> Pod {
    serde_json::from_value(json!({
        "metadata": {"name": "p"},
        "spec": {"containers": [
            {"name": "side", "image": "log:1"},
            {"name": "spark-kubernetes-driver", "image": "spark:4.3.0"},
        ]},
        "status": {"conditions": [
            {"type": "PodScheduled", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"},
            {"type": "DisruptionTarget", "status": "True"},
        ]},
    }))
    .unwrap()
}

fn time(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn seen(state: State) -> Seen {
    Seen {
        container: Some("spark-kubernetes-driver".into()),
        address: Some(Ipv4Addr::new(127, 4, 5, 6)),
        accepted: time("2026-01-01T00:00:01Z"),
        state,
        verdict: None,
    }
}

fn report(state: State) -> serde_json::Value {
    serde_json::to_value(status(&pod(), &seen(state), time("2026-01-01T00:01:00Z"))).unwrap()
}

fn terminated(exit_code: i32) -> State {
    let (since, at) = (time("2026-01-01T00:00:02Z"), time("2026-01-01T00:00:03Z"));
    State::Terminated { exit_code, reason: exit_reason(exit_code), message: None, since: Some(since), at }
}

fn condition<'a>(status: &'a serde_json::Value, name: &str) -> &'a serde_json::Value {
    status["conditions"].as_array().unwrap().iter().find(|c| c["type"] == name).unwrap()
}

#[test]
fn a_running_pod_is_ready() {
    let status = report(State::Running { since: time("2026-01-01T00:00:02Z") });
    assert_eq!(status["phase"], "Running");
    assert_eq!(status["podIP"], "127.4.5.6");
    assert_eq!(status["podIPs"], json!([{"ip": "127.4.5.6"}]));
    assert_eq!(status["hostIP"], "127.0.0.1");
    assert_eq!(condition(&status, "Ready")["status"], "True");
    let container = &status["containerStatuses"][1];
    assert_eq!(container["state"], json!({"running": {"startedAt": "2026-01-01T00:00:02Z"}}));
    assert_eq!((&container["ready"], &container["started"]), (&json!(true), &json!(true)));
}

#[test]
fn the_exit_code_decides_the_phase() {
    for (code, phase, reason, pod_reason) in [
        (0, "Succeeded", "Completed", "PodCompleted"),
        (3, "Failed", "Error", "PodFailed"),
        (137, "Failed", "Error", "PodFailed"),
    ] {
        let status = report(terminated(code));
        assert_eq!(status["phase"], phase);
        let state = &status["containerStatuses"][1]["state"]["terminated"];
        assert_eq!((&state["exitCode"], &state["reason"]), (&json!(code), &json!(reason)));
        assert_eq!(state["finishedAt"], "2026-01-01T00:00:03Z");
        assert_eq!(condition(&status, "Ready")["status"], "False");
        assert_eq!(condition(&status, "Ready")["reason"], pod_reason);
    }
}

#[test]
fn a_verdict_fails_the_pod_whatever_its_exit_code() {
    let verdict = Some(("DeadlineExceeded", "too long".to_owned()));
    let status = status(&pod(), &Seen { verdict, ..seen(terminated(0)) }, time("2026-01-01T00:01:00Z"));
    assert_eq!(status.phase.as_deref(), Some("Failed"));
    assert_eq!(status.reason.as_deref(), Some("DeadlineExceeded"));
}

#[test]
fn only_the_spark_container_runs() {
    let status = report(terminated(0));
    assert_eq!(status["containerStatuses"][0]["state"]["waiting"]["reason"], "NotInSandbox");
}

#[test]
fn transition_times_and_conditions_of_other_clients_stay() {
    let status = report(State::Waiting { reason: "ContainerCreating", message: None });
    assert_eq!(status["phase"], "Pending");
    assert_eq!(condition(&status, "PodScheduled")["lastTransitionTime"], "2026-01-01T00:00:00Z");
    assert_eq!(condition(&status, "Ready")["lastTransitionTime"], "2026-01-01T00:01:00Z");
    assert_eq!(condition(&status, "DisruptionTarget")["status"], "True");
}
