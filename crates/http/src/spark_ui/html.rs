//! Pages of drivers in an origin of their own: what Spark's scripts expect and such an origin lacks.

use bytes::{Bytes, BytesMut};
use futures::{StreamExt, stream};

use sparkgate_service::DriverBytes;

/// Storage that lasts as long as the page. An origin of its own has none, and Spark's scripts end with an error without it.
const STORAGE: &str = concat!(
    r#"<script>for(const name of["localStorage","sessionStorage"])try{window[name]}catch{const kept=new Map;"#,
    r"Object.defineProperty(window,name,{value:{getItem:(key)=>kept.get(String(key))??null,",
    r"setItem:(key,value)=>{kept.set(String(key),String(value))},removeItem:(key)=>{kept.delete(String(key))},",
    r"clear:()=>kept.clear(),key:(at)=>[...kept.keys()][at]??null,get length(){return kept.size}}})}</script>"
);
const DOCTYPE: &[u8] = b"<!doctype";
/// The longest beginning of a page in which its document type is looked for.
const BEGINNING: usize = 1024;

/// Puts the storage in front of all scripts of a page, but behind its document type: without it, browsers lay out the page differently.
pub(super) fn with_storage(mut body: DriverBytes) -> DriverBytes {
    stream::once(async move {
        let mut beginning = BytesMut::new();
        let mut fault = None;
        while place(&beginning).is_none() && beginning.len() < BEGINNING {
            match body.next().await {
                Some(Ok(part)) => beginning.extend_from_slice(&part),
                Some(Err(error)) => {
                    fault = Some(Err(error));
                    break;
                }
                None => break,
            }
        }
        let place = place(&beginning).unwrap_or(0);
        let rest = beginning.split_off(place).freeze();
        let parts = [beginning.freeze(), Bytes::from_static(STORAGE.as_bytes()), rest].map(Ok);
        stream::iter(parts).chain(stream::iter(fault)).chain(body)
    })
    .flatten()
    .boxed()
}

/// Returns where the storage belongs, once that is decided.
fn place(beginning: &[u8]) -> Option<usize> {
    let is_space = |byte: &&u8| byte.is_ascii_whitespace() || [0xEF, 0xBB, 0xBF].contains(*byte);
    let start = beginning.iter().take_while(is_space).count();
    let text = &beginning[start..];
    let common = text.len().min(DOCTYPE.len());
    if !text[..common].eq_ignore_ascii_case(&DOCTYPE[..common]) {
        return Some(start);
    }
    let end = text.iter().position(|byte| *byte == b'>')?;
    Some(start + end + 1)
}

#[cfg(test)]
mod tests {
    use futures::TryStreamExt;

    use super::*;

    async fn page(parts: &[&'static str]) -> String {
        let parts: Vec<_> = parts.iter().map(|part| Ok(Bytes::from_static(part.as_bytes()))).collect();
        let page: Vec<Bytes> = with_storage(stream::iter(parts).boxed()).try_collect().await.unwrap();
        String::from_utf8(page.concat()).unwrap().replace(STORAGE, "*")
    }

    #[tokio::test]
    async fn storage_comes_behind_the_document_type_and_before_all_else() {
        for (parts, expected) in [
            (vec!["<!DOCTYPE html><html><script>"], "<!DOCTYPE html>*<html><script>"),
            (vec!["\n <!doc", "type html", ">\n<html>"], "\n <!doctype html>*\n<html>"),
            (vec!["<html>", "<script>"], "*<html><script>"),
            (vec!["<!--x--><html>"], "*<!--x--><html>"),
            (vec!["text"], "*text"),
            (vec![], "*"),
            (vec!["<!doctype never ends"], "*<!doctype never ends"),
        ] {
            assert_eq!(page(&parts).await, expected, "{parts:?}");
        }
        let long = "<!doctype ".to_owned() + &"x".repeat(2 * BEGINNING);
        let long: &'static str = long.leak();
        assert_eq!(page(&[long, ">"]).await, format!("*{long}>"));
    }
}
