//! Every reply is true: what each reply says about a submission is compared with the database, while connections are
//! cut, backends killed, rows locked, disks full and processes killed.
//!
//! This is the short run. `make answers` does the long one.

mod harness;

use harness::{run::Run, table::TABLE};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_reply_is_true_under_faults() {
    let seed = 20_261_122;
    let run =
        Run { program: env!("CARGO_BIN_EXE_sparkgate").into(), seed, requests: 2_000, clients: 40, talkative: false };
    let report = run.play().await;
    eprintln!("{report}");
    assert!(report.rows > 100, "the faults left only {} rows to compare", report.rows);
    assert!(report.violations.is_empty(), "{}", report.complaint());
}

#[test]
fn the_page_has_the_meaning_of_each_reply() {
    let page = include_str!("../../docs/operate/reliability.md");
    for row in TABLE {
        let line = format!("| {} | {} | {} |", row.asked, row.reply, row.says);
        assert!(page.lines().any(|said| said.starts_with(&line)), "docs/operate/reliability.md lacks {line}");
    }
}
