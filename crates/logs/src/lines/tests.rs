use proptest::prelude::*;

use super::*;

fn told(lines: &mut Lines, pieces: &[&[u8]]) -> String {
    let all: Vec<u8> = pieces.iter().flat_map(|piece| lines.take(piece)).collect();
    String::from_utf8(all).unwrap()
}

fn at(second: u32, nanos: u32) -> String {
    format!("2026-01-02T03:04:{second:02}.{nanos:09}Z")
}

#[test]
fn timestamps_are_included_on_request() {
    let log = format!("{} one\n{} two  words\n{} \n", at(1, 5), at(2, 0), at(3, 0));
    assert_eq!(told(&mut Lines::new(false, None), &[log.as_bytes()]), "one\ntwo  words\n\n");
    assert_eq!(told(&mut Lines::new(true, None), &[log.as_bytes()]), log);
    let since = at(2, 0).parse().unwrap();
    assert_eq!(told(&mut Lines::new(false, Some(since)), &[log.as_bytes()]), "two  words\n\n");
}

#[test]
fn a_line_without_a_timestamp_is_passed_through() {
    let said = "unable to retrieve container logs for containerd://4d1f\n\nfailed";
    let mut lines = Lines::new(false, Some(at(2, 0).parse().unwrap()));
    let mut all = told(&mut lines, &[said.as_bytes()]);
    all.push_str(std::str::from_utf8(&lines.finish()).unwrap());
    assert_eq!(all, said);
    let long = "x".repeat(100_000);
    assert_eq!(told(&mut lines, &[b"\n", long.as_bytes(), b"\n"]), format!("\n{long}\n"));
}

#[test]
fn a_line_that_the_node_rotated_away_leaves_a_gap() {
    let mut lines = Lines::new(false, None);
    told(&mut lines, &[format!("{} a\n", at(1, 0)).as_bytes()]);
    lines.begin_again();
    assert_eq!(told(&mut lines, &[format!("{} b\n{} c\n", at(2, 0), at(3, 0)).as_bytes()]), "b\nc\n");
    assert!(lines.has_gap());
}

#[test]
fn an_error_text_of_a_node_is_returned_once() {
    let mut lines = Lines::new(false, None);
    let said = b"unable to retrieve container logs
";
    assert_eq!(lines.take(said), &said[..]);
    lines.begin_again();
    assert_eq!(told(&mut lines, &[said, b"and more\n"]), "and more\n");
}

#[test]
fn a_broken_stream_resumes_at_its_latest_timestamp() {
    let mut lines = Lines::new(false, None);
    lines.begin_again();
    assert_eq!(lines.told_until(), None);
    told(&mut lines, &[format!("{} a\n{} b\n", at(2, 7), at(2, 3)).as_bytes()]);
    assert_eq!(lines.told_until(), Some(at(2, 7).parse().unwrap()));
}

/// Lines whose timestamps repeat and are slightly out of order, like those of a container's stdout and stderr.
fn a_log() -> impl Strategy<Value = Vec<(u32, String)>> {
    prop::collection::vec((0u32..6, "[a-c ]{0,5}"), 1..12)
}

proptest! {
    /// The result doesn't depend on how the stream is split into pieces, or where it breaks.
    #[test]
    fn each_line_of_a_broken_stream_is_returned_once(log in a_log(), breaks in prop::collection::vec((0usize..400, 1usize..9), 0..5), with_times: bool) {
        let mut time = 0;
        let mut stamped = Vec::new();
        let mut plain = String::new();
        for (step, text) in &log {
            // Sometimes backwards.
            time = if *step == 5 { u32::max(time, 1) - 1 } else { time + step / 2 };
            let head = at(10, time);
            stamped.extend_from_slice(format!("{head} {text}\n").as_bytes());
            plain.push_str(&if with_times { format!("{head} {text}\n") } else { format!("{text}\n") });
        }
        let mut lines = Lines::new(with_times, None);
        let mut all = Vec::new();
        for (end, size) in breaks {
            for piece in stamped[..end.min(stamped.len())].chunks(size) {
                all.extend_from_slice(&lines.take(piece));
            }
            lines.begin_again();
        }
        all.extend_from_slice(&lines.take(&stamped));
        prop_assert_eq!(String::from_utf8(all).unwrap(), plain);
    }
}

#[test]
fn a_log_is_continued_from_its_position_alone() {
    let log = format!("{} a\n{} b\n{} c\n{} d\n{} e\n", at(2, 7), at(2, 7), at(2, 3), at(3, 0), at(3, 0));
    for cut in 0..log.len() {
        let mut first = Lines::new(true, None);
        let mut all = told(&mut first, &[&log.as_bytes()[..cut]]);
        let mut second = Lines::after(first.position());
        second.begin_again();
        all.push_str(&told(&mut second, &[log.as_bytes()]));
        assert_eq!(all, log, "{cut}");
        assert!(!second.has_gap());
    }
}
