//! `sparkgate hold`, `release`, `requeue` and `queue`.

use serde_json::{Value, json};

use crate::cli::{
    played::{Played, Reply, json_answer, problem, submission},
    run::run,
};

const IDS: [&str; 3] = ["driver-20260102030405-0001", "driver-20260102030405-0002", "driver-20260102030405-0003"];

fn waiting(id: &str) -> Value {
    let mut document = submission(id, "QUEUED");
    document["queue"] = json!("night");
    document["priority"] = json!(5);
    document["queuePlace"] = json!({"ahead": 12, "estimate": {"seconds": 540, "errorSeconds": 80, "admissions": 100, "since": "2026-01-02T03:04:05Z"}});
    document["waiting"] = json!({"code": "QUEUED", "class": "waiting",
        "message": "12 submissions of tenant analytics in queue night are before it"});
    document
}

fn gateway() -> Played {
    Played::new(|asked| {
        let path = asked.what.split_once(" /v1/").unwrap().1;
        match path {
            "queue-places" => places(&asked.json()),
            "queues" => json_answer(200, &queues()),
            "queues/none/state" => {
                problem(422, "queue-refused", "The queue doesn't accept it", "There is no queue none.")
            }
            path if path.starts_with("queues/") => {
                Reply::Answer { status: 204, headers: Vec::new(), body: String::new() }
            }
            path if path.contains(IDS[1]) => problem(409, "not-queued", "It isn't queued any more", "It is RUNNING."),
            path => json_answer(200, &waiting(path.split('/').nth(1).unwrap())),
        }
    })
}

/// Answers in two pages, unless one owner's submissions change.
fn places(request: &Value) -> Reply {
    let changed = |ids: &[&str]| json!({"changed": ids.len(), "ids": ids, "refused": 0, "refusals": []});
    let mut answer = if request["cursor"] == "more" { changed(&IDS[1..2]) } else { changed(&IDS[..1]) };
    if request["filter"]["owner"].is_null() && request["cursor"].is_null() {
        answer["next"] = json!("more");
    }
    if request["action"] == "move" && request["cursor"] == "more" {
        answer["refused"] = json!(1);
        answer["refusals"] = json!([{"id": IDS[2], "reason": "queue night drains"}]);
    }
    if request["filter"]["tenant"] == "lost" && request["cursor"] == "more" {
        return problem(403, "denied", "The caller may not do this", "Not any more.");
    }
    json_answer(200, &answer)
}

fn queues() -> Value {
    json!({"queues": [
        {"name": "day", "state": "paused", "changed": {"at": "2026-01-02T03:04:05Z", "by": "corp:ann", "reason": "upgrade"},
            "weight": 3, "fairShare": 0.75, "caps": {"cores": 40.0, "extended": {"nvidia.com/gpu": 4}},
            "running": {"submissions": 2, "pods": 6, "cores": 6.5, "memoryBytes": 8_589_934_592_u64}, "waiting": 7, "held": 1,
            "tenants": {}},
        {"name": "night", "state": "open", "weight": 1, "fairShare": 0.25, "caps": {}, "running": {}, "waiting": 0, "held": 0,
            "tenants": {}},
    ]})
}

#[test]
fn submissions_are_held_and_released_by_their_ids() {
    let gateway = gateway();
    let ended = run(&gateway, &["hold", IDS[0], IDS[1], IDS[2], "--reason", "no data"]);
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    assert_eq!(ended.stdout, format!("{} held\n{} held\n", IDS[0], IDS[2]));
    assert!(ended.stderr.starts_with(&format!("error: {}: ", IDS[1])), "{}", ended.stderr);
    let asked = gateway.asked().remove(0);
    assert_eq!(
        (asked.what.as_str(), asked.json()),
        (&*format!("PUT /v1/submissions/{}/hold", IDS[0]), json!({"reason": "no data"}))
    );
    let ended = run(&gateway, &["release", IDS[0]]);
    assert_eq!((ended.code, ended.stdout), (Some(0), format!("{} released\n", IDS[0])));
    assert_eq!(gateway.asked().last().unwrap().what, format!("DELETE /v1/submissions/{}/hold", IDS[0]));
}

#[test]
fn submissions_are_held_and_released_by_a_filter() {
    let gateway = gateway();
    let ended = run(&gateway, &["hold", "--queue", "night", "-l", "team=data", "-l", "a=b", "--reason", "no data"]);
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), "2 submissions held\n"), "{}", ended.stderr);
    let asked = gateway.asked();
    let request = json!({"filter": {"queue": "night", "labels": {"team": "data", "a": "b"}}, "action": "hold", "reason": "no data"});
    assert_eq!((asked[0].what.as_str(), asked[0].json()), ("PUT /v1/queue-places", request.clone()));
    assert_eq!(
        (asked[1].json()["cursor"].clone(), asked[1].json()["filter"].clone()),
        (json!("more"), request["filter"].clone())
    );
    let words = ["release", "--tenant", "t", "-n", "spark", "--owner", "alice", "--name", "etl-"];
    let ended = run(&gateway, &words);
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), "1 submission released\n"), "{}", ended.stderr);
    let filter = json!({"tenant": "t", "namespace": "spark", "owner": "alice", "name": "etl-"});
    assert_eq!(gateway.asked().last().unwrap().json(), json!({"filter": filter, "action": "release"}));
    let ended = run(&gateway, &["hold", "--all", "-o", "json"]);
    let document: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!((&document["changed"], &document["ids"]), (&json!(2), &json!(IDS[..2])), "{document}");
    assert_eq!(gateway.asked().last().unwrap().json()["filter"], json!({"state": ["QUEUED", "LAUNCHING"]}));
    let ended = run(&gateway, &["hold", "--tenant", "lost"]);
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(1), "1 submission held\n"), "{}", ended.stderr);
    assert!(ended.stderr.contains("Not any more."), "{}", ended.stderr);
    for words in [&["hold"][..], &["release"], &["hold", IDS[0], "--queue", "night"]] {
        assert_eq!(run(&gateway, words).code, Some(2), "{words:?}");
    }
}

#[test]
fn submissions_move_to_another_queue() {
    let gateway = gateway();
    let ended = run(&gateway, &["requeue", IDS[0], IDS[1], "--queue", "night"]);
    assert_eq!((ended.code, ended.stdout), (Some(1), format!("{} in queue night with priority 5\n", IDS[0])));
    let asked = gateway.asked().remove(0);
    assert_eq!(asked.what, format!("PUT /v1/submissions/{}/queue", IDS[0]));
    assert_eq!(asked.json(), json!({"queue": "night", "priority": null}));
    assert_eq!(run(&gateway, &["requeue", IDS[0], "--priority", "5"]).code, Some(0));
    assert_eq!(gateway.asked().last().unwrap().json(), json!({"queue": null, "priority": 5}));
    let ended = run(&gateway, &["requeue", "--from", "day", "--queue", "night"]);
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(1), "2 submissions moved\n"), "{}", ended.stderr);
    assert_eq!(ended.stderr, format!("error: {}: queue night drains\n", IDS[2]));
    let request =
        json!({"filter": {"queue": "day"}, "action": "move", "queue": "night", "priority": null, "cursor": "more"});
    assert_eq!(gateway.asked().last().unwrap().json(), request);
    for words in
        [&["requeue", IDS[0]][..], &["requeue", "--queue", "night"], &["requeue", IDS[0], "--all", "--queue", "night"]]
    {
        assert_eq!(run(&gateway, words).code, Some(2), "{words:?}");
    }
}

#[test]
fn queues_are_listed_and_change_their_states() {
    let gateway = gateway();
    let ended = run(&gateway, &["queue", "list"]);
    let expected = "QUEUE  STATE   SHARE  RUNNING  PODS  CORES   MEMORY  WAITING  HELD\n\
                    day    paused  75 %   2        6     6.5/40  8Gi     7        1\n\
                    night  open    25 %   0        0     0       0       0        0\n";
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), expected), "{}", ended.stderr);
    let wide = run(&gateway, &["queue", "list", "-o", "wide"]).stdout;
    assert!(wide.contains("nvidia.com/gpu=0/4") && wide.contains("corp:ann: upgrade"), "{wide}");
    assert_eq!(run(&gateway, &["queue", "list", "-o", "name"]).stdout, "day\nnight\n");
    for (word, state) in [("pause", "paused"), ("drain", "draining"), ("open", "open")] {
        let ended = run(&gateway, &["queue", word, "day", "--reason", "upgrade"]);
        assert_eq!((ended.code, ended.stdout), (Some(0), format!("day {state}\n")), "{}", ended.stderr);
        let asked = gateway.asked().pop().unwrap();
        assert_eq!(asked.what, "PUT /v1/queues/day/state");
        assert_eq!(asked.json(), json!({"state": state, "reason": "upgrade"}));
    }
    let ended = run(&gateway, &["queue", "pause", "none"]);
    assert!(ended.code == Some(1) && ended.stderr.contains("There is no queue none"), "{}", ended.stderr);
}

#[test]
fn status_and_list_say_what_a_submission_waits_for() {
    let ended = run(&gateway(), &["status", IDS[0]]);
    let page = include_str!("../../../docs/use/client.md").replace("nightly", "night");
    let (_, shown) = page.split_once("$ sparkgate status 20260102\n").unwrap();
    let shown = shown.split("```").next().unwrap().lines().filter(|line| *line != "…");
    assert_eq!(shown.clone().count(), 2);
    for line in shown {
        assert!(ended.stdout.lines().any(|said| said.trim_end() == line), "{line}: {}", ended.stdout);
    }
    let mut held = waiting(IDS[0]);
    held["waiting"] = json!({"code": "HELD", "class": "waiting", "message": "held by corp:ann: no data"});
    held["queuePlace"] = json!({"held": {"at": "2026-01-02T03:04:05Z", "by": "corp:ann", "reason": "no data"}});
    let document = held.clone();
    let gateway = Played::new(move |asked| match asked.what.as_str() {
        "GET /v1/submissions" => json_answer(200, &json!({"items": [document]})),
        _ => json_answer(200, &document),
    });
    let status = run(&gateway, &["status", IDS[0]]).stdout;
    assert!(status.contains("held by corp:ann: no data") && status.contains("night (priority 5)\n"), "{status}");
    let list = run(&gateway, &["list", "--queue", "night", "-o", "wide"]).stdout;
    assert!(list.contains("QUEUED (held)") && list.contains("held by corp:ann: no data"), "{list}");
    assert_eq!(gateway.asked().last().unwrap().query, "limit=50&queue=night");
}
