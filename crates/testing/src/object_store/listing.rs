//! The list of a bucket, page by page.

use std::collections::BTreeSet;

use chrono::{SecondsFormat, TimeDelta, Utc};

use super::{
    call::{Call, tag},
    objects::{Object, Objects, StoreFault},
};

/// The number of entries of a page of S3.
const PAGE: usize = 1000;
const SMALL_PAGE: usize = 2;

/// An entry of a list: an object, or the prefix of several.
enum Entry<'a> {
    Object(&'a str, &'a Object),
    Prefix(String),
}

impl Entry<'_> {
    fn name(&self) -> &str {
        match self {
            Self::Object(key, _) => key,
            Self::Prefix(prefix) => prefix,
        }
    }
}

/// Returns a page, as `ListObjectsV2` does.
pub(super) fn list(all: &Objects, call: &Call, fault: StoreFault) -> String {
    let prefix = call.parameter("prefix").unwrap_or_default();
    let delimiter = call.parameter("delimiter").filter(|delimiter| !delimiter.is_empty());
    let after = call.parameter("continuation-token").or_else(|| call.parameter("start-after")).unwrap_or_default();
    let hidden_since = match fault {
        StoreFault::HideNew(time) => Utc::now() - TimeDelta::from_std(time).unwrap(),
        _ => Utc::now() + TimeDelta::days(1),
    };
    let most = if fault == StoreFault::BreakLists { SMALL_PAGE } else { PAGE };
    let mut prefixes = BTreeSet::new();
    let objects = all.objects.iter().filter(|((bucket, key), object)| {
        *bucket == call.bucket && key.starts_with(prefix) && object.written < hidden_since
    });
    let entries = objects.filter_map(|((_, key), object)| {
        let folder = delimiter.and_then(|delimiter| Some(key[prefix.len()..].split_once(delimiter)?.0));
        match (folder, delimiter) {
            (Some(folder), Some(delimiter)) => {
                let folder = format!("{prefix}{folder}{delimiter}");
                prefixes.insert(folder.clone()).then_some(Entry::Prefix(folder))
            }
            _ => Some(Entry::Object(key, object)),
        }
    });
    let mut entries = entries.filter(|entry| entry.name() > after).peekable();
    let (mut text, mut last) = (String::new(), String::new());
    for entry in entries.by_ref().take(most) {
        last = entry.name().to_owned();
        text += &shown(&entry);
    }
    let next = match entries.peek() {
        Some(_) => format!("<IsTruncated>true</IsTruncated><NextContinuationToken>{last}</NextContinuationToken>"),
        None => "<IsTruncated>false</IsTruncated>".to_owned(),
    };
    format!("<ListBucketResult>{text}{next}</ListBucketResult>")
}

fn shown(entry: &Entry<'_>) -> String {
    match entry {
        Entry::Prefix(prefix) => format!("<CommonPrefixes><Prefix>{prefix}</Prefix></CommonPrefixes>"),
        Entry::Object(key, object) => {
            let (size, tag) = (object.content.len(), tag(&object.content));
            let written = object.written.to_rfc3339_opts(SecondsFormat::Millis, true);
            format!(
                "<Contents><Key>{key}</Key><Size>{size}</Size><LastModified>{written}</LastModified><ETag>{tag}</ETag></Contents>"
            )
        }
    }
}
