//! Parses YAML from users within limits: a Kubernetes object as fabric8's client parses it (the only parser that Spark uses).
//! Text that begins with `{` is parsed as JSON. Text that exceeds the limits, or has more than one document, is an error.

mod error;
mod scalar;

use std::collections::HashMap;

use granit_parser::{Event, Options, Parser, ScalarStyle, Span, StrInput, Tag};
use serde_json::{Map, Value};

pub(crate) use error::{YamlError, shortened};
pub(crate) use scalar::text;

/// Maximum number of bytes of a text: more would not fit into a `ConfigMap`.
pub(crate) const MAX_BYTES: usize = 1 << 20;
/// Maximum nesting of lists and maps, in the text and after its aliases are expanded.
const MAX_DEPTH: usize = 100;
/// Maximum weight of all values, with aliases expanded: the bytes of the strings, plus [`NODE`] for each value.
const MAX_WEIGHT: usize = 4 << 20;
const NODE: usize = 32;

/// Parses one document. A text without any value gives null.
///
/// # Errors
/// A [`YamlError`] that says where the text is invalid, or which limit it exceeds.
pub(crate) fn parse(text: &str) -> Result<Value, YamlError> {
    if text.len() > MAX_BYTES {
        return Err(YamlError::TooLarge { bytes: text.len() });
    }
    if text.trim_start().starts_with('{') {
        return serde_json::from_str(text).map_err(YamlError::Json);
    }
    let events = Parser::new_from_str_with_options(text, options());
    let mut composer = Composer { text, events, anchors: HashMap::new(), weight: 0 };
    let mut document = Value::Null;
    while let Some((event, _)) = composer.next()? {
        if !matches!(event, Event::DocumentStart(..)) {
            continue;
        }
        let (event, span) = composer.expect_next()?;
        let line = span.start.line();
        composer.anchors.clear();
        // As with fabric8, documents without a value don't count: a text may end with `---`.
        match composer.node(event, span, 0)?.value {
            Value::Null => {}
            _ if !document.is_null() => return Err(YamlError::Several { line }),
            value => document = value,
        }
    }
    Ok(document)
}

/// Parses one document from a file.
///
/// # Errors
/// As for [`parse`], and if the content isn't UTF-8.
pub(crate) fn parse_bytes(content: &[u8]) -> Result<Value, YamlError> {
    parse(std::str::from_utf8(content).map_err(YamlError::NotText)?)
}

/// Returns a copy of a value that was parsed elsewhere, unless its text would be too large.
pub(crate) fn bounded(value: &Value) -> Result<Value, YamlError> {
    match value.to_string().len() {
        bytes if bytes > MAX_BYTES => Err(YamlError::TooLarge { bytes }),
        _ => Ok(value.clone()),
    }
}

fn options() -> Options {
    let mut options = Options::default();
    options.set_emit_comments(false);
    options.flow_nesting_limit = MAX_DEPTH;
    options.block_nesting_limit = MAX_DEPTH;
    options
}

/// A value, and its depth and weight, which count again for each alias.
#[derive(Clone)]
struct Node {
    value: Value,
    depth: usize,
    weight: usize,
}

/// Builds values from the parser's events.
struct Composer<'a> {
    text: &'a str,
    events: Parser<'a, StrInput<'a>>,
    anchors: HashMap<usize, Node>,
    weight: usize,
}

impl<'a> Composer<'a> {
    fn next(&mut self) -> Result<Option<(Event<'a>, Span)>, YamlError> {
        self.events.next_event().transpose().map_err(YamlError::Syntax)
    }

    fn expect_next(&mut self) -> Result<(Event<'a>, Span), YamlError> {
        self.next()?.ok_or(YamlError::Unfinished)
    }

    /// Builds one value. The recursion is limited by [`MAX_DEPTH`].
    fn node(&mut self, event: Event<'a>, span: Span, level: usize) -> Result<Node, YamlError> {
        let line = span.start.line();
        let (node, anchor) = match event {
            Event::Scalar(text, style, anchor, tag) => {
                let text = if style == ScalarStyle::Plain && self.is_absent(&text, span) { "" } else { &text };
                (self.scalar(text, style, tag.as_deref(), line)?, anchor)
            }
            Event::SequenceStart(_, anchor, tag) => {
                collection_tag(tag.as_deref(), "seq", line)?;
                (self.sequence(level + 1, line)?, anchor)
            }
            Event::MappingStart(_, anchor, tag) => {
                collection_tag(tag.as_deref(), "map", line)?;
                (self.mapping(level + 1, line)?, anchor)
            }
            Event::Alias(id) => {
                let node = self.anchors.get(&id).cloned().ok_or(YamlError::Cycle { line })?;
                self.weigh(node.weight)?;
                (node, 0)
            }
            _ => return Err(YamlError::Unfinished),
        };
        if level + node.depth > MAX_DEPTH {
            return Err(YamlError::TooDeep { line });
        }
        if anchor != 0 {
            self.weigh(node.weight)?;
            self.anchors.insert(anchor, node.clone());
        }
        Ok(node)
    }

    /// Returns whether a value is absent. The parser reports an absent value as `~`. A `~` in the text itself is a string to
    /// Spark's parser.
    fn is_absent(&self, text: &str, span: Span) -> bool {
        let source = span.start.byte_offset().and_then(|at| self.text.get(at..));
        text == "~" && !source.is_some_and(|source| source.starts_with('~'))
    }

    fn scalar(&mut self, text: &str, style: ScalarStyle, tag: Option<&Tag>, line: usize) -> Result<Node, YamlError> {
        let weight = NODE + text.len();
        self.weigh(weight)?;
        Ok(Node { value: scalar::resolve(text, style, tag, line)?, depth: 0, weight })
    }

    fn sequence(&mut self, level: usize, line: usize) -> Result<Node, YamlError> {
        self.open(level, line)?;
        let (mut values, mut depth, mut weight) = (Vec::new(), 0, NODE);
        loop {
            let (event, span) = self.expect_next()?;
            if matches!(event, Event::SequenceEnd) {
                return Ok(Node { value: Value::Array(values), depth: depth + 1, weight });
            }
            let item = self.node(event, span, level)?;
            depth = depth.max(item.depth);
            weight += item.weight;
            values.push(item.value);
        }
    }

    fn mapping(&mut self, level: usize, line: usize) -> Result<Node, YamlError> {
        self.open(level, line)?;
        let (mut entries, mut depth, mut weight) = (Map::new(), 0, NODE);
        loop {
            let (event, span) = self.expect_next()?;
            if matches!(event, Event::MappingEnd) {
                return Ok(Node { value: Value::Object(entries), depth: depth + 1, weight });
            }
            let line = span.start.line();
            let key = self.node(event, span, level)?;
            let name = scalar::text(&key.value).ok_or(YamlError::Key { line })?;
            let (event, span) = self.expect_next()?;
            let item = self.node(event, span, level)?;
            depth = depth.max(item.depth);
            weight += key.weight + item.weight;
            if entries.insert(name.clone(), item.value).is_some() {
                return Err(YamlError::Duplicate { key: shortened(&name), line });
            }
        }
    }

    fn open(&mut self, level: usize, line: usize) -> Result<(), YamlError> {
        if level > MAX_DEPTH {
            return Err(YamlError::TooDeep { line });
        }
        self.weigh(NODE)
    }

    fn weigh(&mut self, weight: usize) -> Result<(), YamlError> {
        self.weight += weight;
        if self.weight > MAX_WEIGHT { Err(YamlError::TooHeavy) } else { Ok(()) }
    }
}

/// Checks the tag of a list or map, which may name its own type and no other.
fn collection_tag(tag: Option<&Tag>, own: &str, line: usize) -> Result<(), YamlError> {
    match tag {
        Some(tag) if tag.core_suffix() != Some(own) => Err(YamlError::Tag { tag: shortened(&tag.original()), line }),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;
