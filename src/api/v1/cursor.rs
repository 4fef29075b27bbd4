//! Cursors: opaque texts that say where the next page of a list begins. A cursor is valid only for the list that it came
//! from: it contains a checksum over the installation, the filter and the place.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use sha2::{Digest, Sha256};

use super::{Problem, problem::Code};

const MARK: usize = 8;

/// Returns the cursor that continues after `place` in the list that `list` describes.
pub(super) fn write(installation: &[u8], list: &str, place: i64) -> String {
    let mut bytes = place.to_be_bytes().to_vec();
    bytes.extend(mark(installation, list, place));
    URL_SAFE_NO_PAD.encode(bytes)
}

/// Returns the place that a cursor of this list stands for.
pub(super) fn read(installation: &[u8], list: &str, cursor: &str) -> Result<i64, Problem> {
    let bytes = URL_SAFE_NO_PAD.decode(cursor).ok();
    let place = bytes.as_deref().and_then(|bytes| {
        let (place, made) = bytes.split_first_chunk::<8>()?;
        let place = i64::from_be_bytes(*place);
        (mark(installation, list, place) == made).then_some(place)
    });
    place.ok_or_else(invalid)
}

pub(super) fn invalid() -> Problem {
    let detail =
        "A cursor is the `next` of an earlier page, unchanged and with the same filters; start again without a cursor.";
    Problem::new(Code::InvalidCursor, detail)
}

fn mark(installation: &[u8], list: &str, place: i64) -> [u8; MARK] {
    let digest =
        Sha256::new().chain_update(installation).chain_update(list).chain_update(place.to_be_bytes()).finalize();
    let mut mark = [0; MARK];
    mark.copy_from_slice(&digest[..MARK]);
    mark
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cursor_is_valid_only_for_its_own_list() {
        let cursor = write(b"here", "owner=a", 7);
        assert_eq!(read(b"here", "owner=a", &cursor).ok(), Some(7));
        for (installation, list, cursor) in [
            (&b"there"[..], "owner=a", cursor.as_str()),
            (b"here", "owner=b", &cursor),
            (b"here", "owner=a", &cursor[1..]),
            (b"here", "owner=a", "AAAAAAAAAAc"),
            (b"here", "owner=a", "é"),
            (b"here", "owner=a", ""),
        ] {
            assert_eq!(read(installation, list, cursor).unwrap_err().code, Code::InvalidCursor, "{cursor}");
        }
    }
}
