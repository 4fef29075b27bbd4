//! The pods: one as kube-apiserver served it, with its status and managed fields, and all others derived from it.

use anyhow::Context;

use crate::servers::rows;

/// The template of a pod. `%WORD%` marks the parts that differ.
const DRIVER: &str = include_str!("driver.json");

pub(super) struct Pods {
    pub(super) count: usize,
    /// Alternates between text and placeholders, beginning with text.
    template: Vec<String>,
}

impl Pods {
    pub(super) fn new(count: usize) -> anyhow::Result<Self> {
        let compact: serde_json::Value =
            serde_json::from_str(DRIVER).context("reading the template of a driver pod")?;
        Ok(Self { count, template: compact.to_string().split('%').map(str::to_owned).collect() })
    }

    /// Returns the JSON of a list of at most `limit` pods, beginning at position `from`.
    pub(super) fn page(&self, from: usize, limit: usize, version: u64, instance: &str) -> String {
        let until = self.count.min(from.saturating_add(limit));
        let next = if until < self.count {
            format!(r#","continue":"{until}","remainingItemCount":{}"#, self.count - until)
        } else {
            String::new()
        };
        let metadata = format!(r#"{{"resourceVersion":"{version}"{next}}}"#);
        let mut list = format!(r#"{{"kind":"PodList","apiVersion":"v1","metadata":{metadata},"items":["#);
        for place in from..until {
            if place > from {
                list.push(',');
            }
            self.write(place + 1, instance, &mut list);
        }
        list.push_str("]}");
        list
    }

    fn write(&self, number: usize, instance: &str, out: &mut String) {
        for (place, part) in self.template.iter().enumerate() {
            match part.as_str() {
                text if place % 2 == 0 => out.push_str(text),
                "ID" => out.push_str(&rows::id(number)),
                "NAME" => out.push_str(&rows::name(number)),
                "POD" => out.push_str(&rows::pod(number)),
                "UID" => out.push_str(&rows::uid(number)),
                "INSTANCE" => out.push_str(instance),
                // Each pod has its own resource version.
                _ => out.push_str(&number.to_string()),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_played_pod_has_the_size_of_a_real_one_and_its_own_names() {
        let pods = Pods::new(3).unwrap();
        let page = pods.page(1, 1, 9, "i");
        assert!((7500..9000).contains(&page.len()), "{}", page.len());
        let page: serde_json::Value = serde_json::from_str(&page).unwrap();
        assert_eq!((&page["metadata"]["continue"], &page["items"][1]), (&"2".into(), &serde_json::Value::Null));
        let metadata = &page["items"][0]["metadata"];
        assert_eq!(metadata["labels"]["sparkgate.dev/submission-id"], rows::id(2));
        assert_eq!((&metadata["uid"], &metadata["name"]), (&rows::uid(2).into(), &rows::pod(2).into()));
        let last: serde_json::Value = serde_json::from_str(&pods.page(2, 500, 9, "i")).unwrap();
        assert_eq!(last["metadata"], serde_json::json!({"resourceVersion": "9"}));
    }
}
