//! The target of a path: `/api/v1/namespaces/{namespace}/{plural}/{name}/{subresource}` and its shorter forms.

use percent_encoding::percent_decode_str;

use super::resource::{self, Resource};

#[derive(Debug, PartialEq)]
pub(super) struct Target {
    pub(super) resource: &'static Resource,
    pub(super) namespace: Option<String>,
    pub(super) name: Option<String>,
    pub(super) subresource: Option<String>,
}

impl PartialEq for Resource {
    fn eq(&self, other: &Self) -> bool {
        self.group == other.group && self.plural == other.plural
    }
}

impl Target {
    /// Parses a path. `None` if nothing is served there.
    pub(super) fn parse(path: &str) -> Option<Self> {
        let segments: Vec<String> = path
            .trim_matches('/')
            .split('/')
            .map(|segment| percent_decode_str(segment).decode_utf8().ok().map(Into::into))
            .collect::<Option<_>>()?;
        let segments: Vec<&str> = segments.iter().map(String::as_str).collect();
        match segments.as_slice() {
            ["api", "v1", rest @ ..] => Self::within("", rest),
            ["apis", group, "v1", rest @ ..] => Self::within(group, rest),
            _ => None,
        }
    }

    fn within(group: &str, rest: &[&str]) -> Option<Self> {
        match rest {
            ["namespaces", name, "status" | "finalize"] => {
                Self::new(group, None, "namespaces", &[name, rest.last().copied()?])
            }
            ["namespaces", namespace, plural, rest @ ..] => Self::new(group, Some(namespace), plural, rest),
            [plural, rest @ ..] => Self::new(group, None, plural, rest),
            [] => None,
        }
    }

    fn new(group: &str, namespace: Option<&str>, plural: &str, rest: &[&str]) -> Option<Self> {
        let resource = resource::find(group, plural)?;
        let (name, subresource) = match rest {
            [] => (None, None),
            [name] => (Some(*name), None),
            [name, subresource] => (Some(*name), Some(*subresource)),
            _ => return None,
        };
        // Without a namespace, only the list of a namespaced resource is served.
        let fits = if resource.namespaced { namespace.is_some() || name.is_none() } else { namespace.is_none() };
        let owned = |text: Option<&str>| text.map(str::to_owned);
        fits.then(|| Self { resource, namespace: owned(namespace), name: owned(name), subresource: owned(subresource) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the parts that are present, joined by spaces.
    fn parts(path: &str) -> Option<String> {
        let target = Target::parse(path)?;
        let plural = Some(target.resource.plural.to_owned());
        let parts: Vec<String> =
            [plural, target.namespace, target.name, target.subresource].into_iter().flatten().collect();
        Some(parts.join(" "))
    }

    #[test]
    fn every_form_of_path_is_parsed() {
        for (path, expected) in [
            ("/api/v1/pods", Some("pods")),
            ("/api/v1/namespaces/a/pods/b/log", Some("pods a b log")),
            ("/api/v1/namespaces/a", Some("namespaces a")),
            ("/api/v1/namespaces/a/status", Some("namespaces a status")),
            ("/api/v1/nodes/n%2e1", Some("nodes n.1")),
            ("/apis/networking.k8s.io/v1/namespaces/a/networkpolicies/b", Some("networkpolicies a b")),
            ("/api/v1/pods/b", None),
            ("/api/v1/namespaces/a/nodes", None),
            ("/api/v1/namespaces/a/pods/b/c/d", None),
            ("/api/v1/namespaces/a/%ff", None),
            ("/apis/apps/v1/deployments", None),
            ("/api/v1", None),
        ] {
            assert_eq!(parts(path).as_deref(), expected, "{path}");
        }
    }
}
