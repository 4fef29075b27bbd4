//! Signatures, verified by the reference library of Standard Webhooks for Python.

use std::{
    io::Write,
    path::Path,
    process::{Command, Stdio},
};

use serde_json::{Value, json};
use sparkgate_testing::{
    receiver::{Answer, Received, Receiver},
    wait::until,
};
use sqlx::PgPool;

use crate::webhooks::world::Replica;

/// Returns what the library says of each message with a secret.
fn verify(messages: &[(&str, &Received)]) -> Vec<Value> {
    let venv =
        std::env::var("SPARKGATE_STANDARD_WEBHOOKS").expect("SPARKGATE_STANDARD_WEBHOOKS is not set: run `make test`");
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/gateway/webhooks/verify.py");
    let mut python = Command::new(Path::new(&venv).join("bin/python"));
    let mut python = python.arg(program).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut input = python.stdin.take().unwrap();
    for (secret, message) in messages {
        writeln!(input, "{}", json!({"secret": secret, "headers": message.headers, "body": message.body})).unwrap();
    }
    drop(input);
    let output = python.wait_with_output().unwrap();
    assert!(output.status.success());
    String::from_utf8(output.stdout).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[sqlx::test]
async fn signatures_are_valid_to_the_reference_library_across_a_rotation(pool: PgPool) {
    let receiver = Receiver::start(|_, _| Answer::Status(200)).await;
    let replica = Replica::new(&pool).await.run();
    let webhook = replica.create(json!({"url": receiver.url("/x"), "bearerToken": "t0ken"})).await;
    let old = webhook["secret"].as_str().unwrap();
    let id = replica.submit(json!({})).await;
    until("it is sent", async || receiver.taken("/x").len() == 1).await;
    let path = format!("/v1/webhooks/{}", webhook["id"].as_str().unwrap());
    let (status, rotated) = replica.ask("POST", &format!("{path}/rotate"), None).await;
    assert_eq!(status, 200, "{rotated}");
    let new = rotated["secret"].as_str().unwrap();
    assert_ne!(new, old);
    replica.advance(&id, "RUNNING").await;
    until("it is sent", async || receiver.taken("/x").len() == 2).await;
    sqlx::query("UPDATE webhooks SET previous_until = now()").execute(&pool).await.unwrap();
    replica.advance(&id, "FINISHED").await;
    until("it is sent", async || receiver.taken("/x").len() == 3).await;

    let received = receiver.taken("/x");
    assert!(received.iter().all(|message| message.headers["authorization"] == "Bearer t0ken"));
    let mut forged = received[0].clone();
    forged.body = forged.body.replace("QUEUED", "FAILED");
    let verdicts = verify(&[
        (old, &received[0]),
        (new, &received[0]),
        (old, &received[1]),
        (new, &received[1]),
        (old, &received[2]),
        (new, &received[2]),
        (old, &forged),
    ]);
    let states: Vec<_> = verdicts.iter().map(|event| event["data"]["state"].as_str()).collect();
    let (queued, running, finished) = (Some("QUEUED"), Some("RUNNING"), Some("FINISHED"));
    assert_eq!(states, [queued, None, running, running, None, finished, None], "{verdicts:?}");
}
