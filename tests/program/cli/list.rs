//! `sparkgate list`.

use serde_json::{Value, json};

use crate::cli::{
    played::{Played, Reply, json_answer, submission},
    run::run,
};

#[test]
fn list_filters_are_passed_to_the_api() {
    let gateway = Played::new(|_| json_answer(200, &json!({"items": []})));
    let words = [
        "list",
        "--state",
        "running,FAILED",
        "--name",
        "Pi &",
        "--owner",
        "alice",
        "--namespace",
        "spark",
        "--label",
        "team=data",
        "--label",
        "a=b",
        "--since",
        "2026-01-02T03:04:05Z",
        "--limit",
        "7",
        "--cursor",
        "c1",
    ];
    let ended = run(&gateway, &words);
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), "no submissions\n"));
    assert_eq!(ended.stdout, "ID  NAME  STATE  OWNER  AGE  DURATION  REASON\n");
    assert_eq!(
        gateway.asked()[0].query,
        "limit=7&state=RUNNING&state=FAILED&label=team%3Ddata&label=a%3Db&name=Pi%20%26&owner=alice&namespace=spark\
         &createdAfter=2026-01-02T03%3A04%3A05.000Z&cursor=c1"
    );
}

fn pages() -> Played {
    Played::new(|asked| match asked.query.as_str() {
        "limit=50" | "limit=500" => {
            json_answer(200, &json!({"items": [submission("driver-1-2", "RUNNING")], "next": "c"}))
        }
        "limit=500&cursor=c" => json_answer(200, &json!({"items": [submission("driver-1-1", "FINISHED")]})),
        other => panic!("{other}"),
    })
}

#[test]
fn a_page_mentions_further_ones_and_all_reads_them() {
    let ended = run(&pages(), &["list"]);
    assert!(ended.stdout.contains("driver-1-2") && !ended.stdout.contains("driver-1-1"), "{}", ended.stdout);
    assert_eq!(ended.stderr, "there are more: use --all or a larger --limit\n");
    let ended = run(&pages(), &["list", "--all"]);
    assert_eq!((ended.stdout.lines().count(), ended.stderr.as_str()), (3, ""));
    let ended = run(&pages(), &["list", "--all", "-o", "json"]);
    let all: Value = serde_json::from_str(&ended.stdout).unwrap();
    let ids: Vec<&Value> = all["items"].as_array().unwrap().iter().map(|item| &item["id"]).collect();
    assert_eq!(ids, ["driver-1-2", "driver-1-1"]);
}

#[test]
fn json_output_is_the_gateways_reply_unchanged() {
    let body = "{\"next\": \"c\",\n \"items\": [ ] , \"new\": 1e3}";
    let gateway = Played::new(|_| Reply::Answer { status: 200, headers: Vec::new(), body: body.to_owned() });
    let ended = run(&gateway, &["list", "--output", "json"]);
    assert_eq!((ended.code, ended.stdout), (Some(0), format!("{body}\n")));
}

#[test]
fn a_list_has_more_columns_or_only_ids() {
    let item = json!({"id": "driver-1-1", "name": "Pi", "state": "RUNNING", "owner": "alice", "namespace": "spark", "attempt": 2,
        "tenant": "red", "principal": "key:15df859371ee2372", "principalName": "airflow",
        "sparkVersion": "4.3.0", "labels": {"a": "b", "c": "d"}, "driver": {"node": "n-1"}});
    let gateway = Played::new(move |_| json_answer(200, &json!({"items": [item]})));
    let ended = run(&gateway, &["list", "-o", "name", "-n", "spark", "-l", "a=b", "--client-id", "x/1"]);
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), "driver-1-1\n"));
    assert_eq!(gateway.asked()[0].query, "limit=50&label=a%3Db&namespace=spark&clientId=x%2F1");
    let ended = run(&gateway, &["list", "-o", "wide"]);
    let expected = "ID          NAME  STATE    OWNER  AGE  DURATION  REASON  TENANT  BY       NAMESPACE  SPARK  ATTEMPT  NODE  QUEUE  LABELS   WAITS FOR\n\
                    driver-1-1  Pi    RUNNING  alice                         red     airflow  spark      4.3.0  2        n-1          a=b,c=d\n";
    assert_eq!(ended.stdout, expected);
    let words = [
        "list",
        "--failed",
        "--tenant",
        "red",
        "--by",
        "corp:alice",
        "--failure-code",
        "lost,OUT_OF_MEMORY",
        "--name-contains",
        "night",
    ];
    let ended = run(&gateway, &[&words[..], &["--since", "2026-01-02"]].concat());
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert_eq!(
        gateway.asked()[2].query,
        "limit=50&state=FAILED&state=ERROR&state=LOST&failureCode=LOST&failureCode=OUT_OF_MEMORY&nameContains=night\
         &principal=corp%3Aalice&tenant=red&createdAfter=2026-01-02T00%3A00%3A00.000Z"
    );
    assert_eq!(run(&gateway, &["list", "--failed", "--state", "LOST"]).code, Some(2));
}
