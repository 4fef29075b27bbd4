//! `sparkgate kill`.

use crate::{
    played::{Played, json_answer, problem, submission},
    run::run,
};

const IDS: [&str; 3] = ["driver-20260102030405-0001", "driver-20260102030405-0002", "driver-20260102030405-0003"];

fn gateway() -> Played {
    Played::new(|asked| {
        let id = asked.what.rsplit('/').find(|part| part.starts_with("driver-")).unwrap();
        match asked.what.split(' ').next().unwrap() {
            _ if id == IDS[1] => problem(404, "submission-not-found", "Submission not found", "There is none."),
            "DELETE" => json_answer(202, &submission(id, "KILLING")),
            _ if asked.what.ends_with("/wait") => json_answer(200, &submission(id, "KILLED")),
            _ if asked.before == 0 => json_answer(200, &submission(id, "KILLING")),
            _ => json_answer(200, &submission(id, "KILLED")),
        }
    })
}

#[test]
fn a_failed_kill_does_not_stop_the_others() {
    let ended = run(&gateway(), &["kill", IDS[0], IDS[1], IDS[2]]);
    assert_eq!(ended.code, Some(4));
    assert_eq!(ended.stdout, format!("{} KILLING\n{} KILLING\n", IDS[0], IDS[2]));
    assert!(ended.stderr.starts_with(&format!("error: {}: Submission not found", IDS[1])), "{}", ended.stderr);
}

#[test]
fn kill_with_wait_returns_when_all_have_ended() {
    let ended = run(&gateway(), &["kill", "--wait", IDS[0], IDS[2]]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert_eq!(ended.stdout, format!("{} KILLED\n{} KILLED\n", IDS[0], IDS[2]));
}
