//! A value within an object, with its path.

use serde_json::Value;

static ABSENT: Value = Value::Null;

/// A value within an object. It knows its parents, so that a path is written only for a violation.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Node<'a> {
    pub(crate) value: &'a Value,
    segment: Segment<'a>,
    parent: Option<&'a Node<'a>>,
}

#[derive(Debug, Clone, Copy)]
enum Segment<'a> {
    Root(Root<'a>),
    Key(&'a str),
    Index(usize),
}

/// The object that a value is part of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Root<'a> {
    /// The driver's pod.
    Driver,
    /// An executor's pod, as the driver will create it.
    Executor,
    /// Another object of the driver, by kind and name.
    Object(&'a str, &'a str),
    /// A claim that the driver will create for an executor, by the name of its volume.
    ExecutorClaim(&'a str),
}

/// One step of a path, and the value that it leads to.
#[derive(Debug, Clone)]
pub(crate) struct Step<'a> {
    pub(crate) name: String,
    pub(crate) is_index: bool,
    pub(crate) value: &'a Value,
}

impl<'a> Node<'a> {
    pub(crate) fn new(root: Root<'a>, value: &'a Value) -> Self {
        Self { value, segment: Segment::Root(root), parent: None }
    }

    /// Returns a field of an object. An absent field is `null`.
    pub(crate) fn field(&'a self, name: &'a str) -> Node<'a> {
        let value = self.value.get(name).unwrap_or(&ABSENT);
        Node { value, segment: Segment::Key(name), parent: Some(self) }
    }

    /// Returns the elements of a list. What isn't a list has none.
    pub(crate) fn items(&'a self) -> impl Iterator<Item = Node<'a>> {
        let list = self.value.as_array().map(Vec::as_slice).unwrap_or_default();
        let node = |(index, value)| Node { value, segment: Segment::Index(index), parent: Some(self) };
        list.iter().enumerate().map(node)
    }

    /// Returns the entries of a map. What isn't a map has none.
    pub(crate) fn entries(&'a self) -> impl Iterator<Item = (&'a str, Node<'a>)> {
        let entries = self.value.as_object().into_iter().flatten();
        entries.map(|(key, value)| (key.as_str(), Node { value, segment: Segment::Key(key), parent: Some(self) }))
    }

    pub(crate) fn text(&self) -> Option<&'a str> {
        self.value.as_str()
    }

    /// Returns the text of a string field, and an empty one for an absent field.
    pub(crate) fn text_of(&self, field: &str) -> &'a str {
        self.value.get(field).and_then(Value::as_str).unwrap_or_default()
    }

    /// Returns whether the field is set. An empty string, list or map and `false` count as absent, as they do for Kubernetes.
    pub(crate) fn is_set(&self) -> bool {
        match self.value {
            Value::Null | Value::Bool(false) => false,
            Value::Bool(true) | Value::Number(_) => true,
            Value::String(text) => !text.is_empty(),
            Value::Array(list) => !list.is_empty(),
            Value::Object(map) => !map.is_empty(),
        }
    }

    pub(crate) fn is_true(&self) -> bool {
        self.value == &Value::Bool(true)
    }

    pub(crate) fn root(&self) -> Root<'a> {
        let mut node = self;
        loop {
            match (node.segment, node.parent) {
                (Segment::Root(root), _) => return root,
                (_, Some(parent)) => node = parent,
                (_, None) => return Root::Driver,
            }
        }
    }

    /// Returns the steps from the root to this value.
    pub(crate) fn steps(&self) -> Vec<Step<'a>> {
        let mut steps = Vec::new();
        let mut node = Some(self);
        while let Some(current) = node {
            match current.segment {
                Segment::Root(_) => {}
                Segment::Key(key) => {
                    steps.push(Step { name: key.to_owned(), is_index: false, value: current.value });
                }
                Segment::Index(index) => {
                    steps.push(Step { name: index.to_string(), is_index: true, value: current.value });
                }
            }
            node = current.parent;
        }
        steps.reverse();
        steps
    }

    /// Returns the path: the object, then the steps as in a JSON pointer (RFC 6901).
    pub(crate) fn path(&self) -> String {
        let mut path = match self.root() {
            Root::Driver => "Pod".to_owned(),
            Root::Executor => "Executor".to_owned(),
            Root::Object(kind, name) => format!("{kind}[{name}]"),
            Root::ExecutorClaim(volume) => format!("ExecutorClaim[{volume}]"),
        };
        for step in self.steps() {
            path.push('/');
            path.push_str(&step.name.replace('~', "~0").replace('/', "~1"));
        }
        path
    }
}

/// Returns a text for a message, of 100 characters at most.
pub(crate) fn shortened(text: &str) -> String {
    const MAX: usize = 100;
    match text.char_indices().nth(MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
