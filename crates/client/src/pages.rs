//! Lists that the gateway answers page by page.

use serde::{Deserialize, de::DeserializeOwned};

use super::{
    api::{Api, Call},
    document,
    error::Error,
};

/// A page of a list.
#[derive(Deserialize)]
struct Page<Item> {
    items: Vec<Item>,
    /// The cursor of the next page.
    next: Option<String>,
}

/// Reads the page at a cursor, and with `all` the ones after it. `call` returns the call for the page at a cursor. Returns the items, and
/// the cursor of the next page.
///
/// # Errors
/// Those of the calls.
pub(super) async fn pages<Item: DeserializeOwned>(
    api: &Api,
    mut cursor: Option<String>,
    all: bool,
    call: impl Fn(Option<&str>) -> Call,
) -> Result<(Vec<Item>, Option<String>), Error> {
    let mut items = Vec::new();
    loop {
        let call = call(cursor.as_deref());
        let page: Page<Item> = document::read(call.action(), &api.send(&call).await?.body)?;
        items.extend(page.items);
        cursor = page.next;
        if cursor.is_none() || !all {
            return Ok((items, cursor));
        }
    }
}
