//! The objects that a list, a watch or a deletecollection selects.

pub(super) mod fields;
pub(super) mod labels;

use super::failure::{Answer, Failure};
use super::object::{Object, text};
use super::options::Options;
use super::resource::Resource;
use super::target::Target;
use fields::FieldSelector;
use labels::LabelSelector;

/// Resource, namespace and selectors of one request.
#[derive(Debug)]
pub(super) struct Selection {
    pub(super) resource: &'static Resource,
    pub(super) namespace: Option<String>,
    labels: LabelSelector,
    fields: FieldSelector,
}

impl Selection {
    /// Parses the selection of a request.
    ///
    /// # Errors
    /// A selector cannot be parsed, or names a field by which the resource cannot be selected.
    pub(super) fn new(target: &Target, options: &Options) -> Answer<Self> {
        let resource = target.resource;
        let mut fields = FieldSelector::parse(options.text("fieldSelector"), resource).map_err(Failure::bad_request)?;
        if let Some(name) = &target.name {
            fields.require_name(name);
        }
        Ok(Self {
            resource,
            namespace: target.namespace.clone(),
            labels: LabelSelector::parse(options.text("labelSelector")).map_err(Failure::bad_request)?,
            fields,
        })
    }

    pub(super) fn matches(&self, object: &Object) -> bool {
        object.resource.plural == self.resource.plural
            && self.namespace.as_deref().is_none_or(|wanted| wanted == text(&object.value, "/metadata/namespace"))
            && self.labels.matches(&object.value)
            && self.fields.matches(&object.value)
    }

    /// Returns whether every object of the resource and namespace is selected.
    pub(super) fn takes_all(&self) -> bool {
        self.labels.is_empty() && self.fields.is_empty()
    }
}
