//! The resource API: bodies, queries and cursors.

use sparkgate::{api::fuzzing, spark::SparkVersion};

use super::{input::text, requests::can_be_stored};

/// The body of `POST /v1/submissions`.
pub fn request(data: &[u8]) {
    if let Some((request, _)) = fuzzing::create_request(data, SparkVersion::V4_3) {
        can_be_stored(&request);
    }
}

/// The parameters of lists and streams.
pub fn query(data: &[u8]) {
    if let Some(text) = text(data) {
        fuzzing::query(text);
    }
}

/// The cursor of a list: any text, and valid cursors that the text changes.
pub fn cursor(data: &[u8]) {
    let Some(text) = text(data) else { return };
    let key = [7; 32];
    assert_eq!(fuzzing::cursor(&key, "list", text), None, "only the target has the key");
    let place = data.iter().fold(0_i64, |place, byte| place.wrapping_mul(257) ^ i64::from(*byte));
    let written = fuzzing::written_cursor(&key, text, place).expect("a place can be encrypted");
    assert_eq!(fuzzing::cursor(&key, text, &written), Some(place), "a cursor leads back to its place");
    assert_eq!(fuzzing::cursor(&[8; 32], text, &written), None, "a cursor is of one installation");
    assert_eq!(fuzzing::cursor(&key, &format!("{text}."), &written), None, "a cursor is of one list");
    for (at, with) in text.char_indices() {
        let at = at % written.len();
        let changed = format!("{}{with}{}", &written[..at], &written[at + 1..]);
        assert!(changed == written || fuzzing::cursor(&key, text, &changed).is_none(), "{changed} was not written");
    }
}
