//! Cursors: opaque texts that say where the next page of a list begins. A cursor is encrypted, because the numbers of submissions
//! count those of all tenants, and is valid only for the list that it came from.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use ring::{
    aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey},
    error::Unspecified,
    rand::{SecureRandom, SystemRandom},
};

use crate::problem::{Code, Problem};

/// Returns the cursor that continues after `place` in the list that `list` describes, encrypted with the first key.
pub fn write(keys: &[[u8; 32]], list: &str, place: i64) -> Result<String, Problem> {
    let key = keys.first().ok_or(Unspecified);
    key.and_then(|key| seal(key, list, place))
        .map_err(|Unspecified| Problem::internal("encrypting a cursor failed".to_owned()))
}

/// Returns the place that a cursor of this list stands for.
pub fn read(keys: &[[u8; 32]], list: &str, cursor: &str) -> Result<i64, Problem> {
    keys.iter().find_map(|key| open(key, list, cursor)).ok_or_else(invalid)
}

/// Cuts a list, which was read with one item more than a page has, to a page, and returns the cursor of the next one.
pub fn cut<T>(
    keys: &[[u8; 32]],
    list: &str,
    items: &mut Vec<T>,
    limit: u32,
    place: impl Fn(&T) -> i64,
) -> Result<Option<String>, Problem> {
    let more = items.len() > limit as usize;
    items.truncate(limit as usize);
    items.last().filter(|_| more).map(|last| write(keys, list, place(last))).transpose()
}

/// Returns the problem of a cursor of another list.
pub fn invalid() -> Problem {
    let detail =
        "A cursor is the `next` of an earlier page, unchanged and with the same filters; start again without a cursor.";
    Problem::new(Code::InvalidCursor, detail)
}

/// Returns the nonce, the encrypted place and its tag.
fn seal(key: &[u8; 32], list: &str, place: i64) -> Result<String, Unspecified> {
    let mut nonce = [0; NONCE_LEN];
    SystemRandom::new().fill(&mut nonce)?;
    let mut place = place.to_be_bytes();
    let tag = cipher(key)?.seal_in_place_separate_tag(
        Nonce::assume_unique_for_key(nonce),
        Aad::from(list.as_bytes()),
        &mut place,
    )?;
    Ok(URL_SAFE_NO_PAD.encode([&nonce[..], &place, tag.as_ref()].concat()))
}

fn open(key: &[u8; 32], list: &str, cursor: &str) -> Option<i64> {
    let bytes = URL_SAFE_NO_PAD.decode(cursor).ok()?;
    let (nonce, sealed) = bytes.split_first_chunk()?;
    let (nonce, mut sealed) = (Nonce::assume_unique_for_key(*nonce), sealed.to_vec());
    let place = cipher(key).ok()?.open_in_place(nonce, Aad::from(list.as_bytes()), &mut sealed).ok()?;
    Some(i64::from_be_bytes((&*place).try_into().ok()?))
}

fn cipher(key: &[u8; 32]) -> Result<LessSafeKey, Unspecified> {
    Ok(LessSafeKey::new(UnboundKey::new(&AES_256_GCM, key)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_valid_only_for_its_own_list() {
        let (here, there) = ([[1; 32]], [[2; 32]]);
        let cursor = write(&here, "owner=a", 7).unwrap();
        assert_eq!(read(&here, "owner=a", &cursor).ok(), Some(7));
        assert_eq!(read(&[there[0], here[0]], "owner=a", &cursor).ok(), Some(7), "after a rotation");
        for (key, list, cursor) in [
            (&there, "owner=a", cursor.as_str()),
            (&here, "owner=b", &cursor),
            (&here, "owner=a", &cursor[1..]),
            (&here, "owner=a", "AAAAAAAAAAc"),
            (&here, "owner=a", "é"),
            (&here, "owner=a", ""),
        ] {
            assert_eq!(read(key, list, cursor).unwrap_err().code, Code::InvalidCursor, "{cursor}");
        }
    }

    #[test]
    fn cursors_do_not_tell_their_places() {
        let places = [7, 7, 8].map(|place| write(&[[1; 32]], "", place).unwrap());
        let shared = |one: &str, other: &str| one.bytes().zip(other.bytes()).take_while(|(a, b)| a == b).count();
        assert!(shared(&places[0], &places[1]) < 16 && shared(&places[0], &places[2]) < 16, "{places:?}");
    }
}
