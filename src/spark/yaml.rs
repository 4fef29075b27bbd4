//! YAML that users send, read within bounds: an object of Kubernetes as fabric8's client reads it (Spark's only reader),
//! where a text that begins with `{` is JSON. A text beyond the bounds, or with more than one document, is an error.

mod error;
mod scalar;

use std::collections::HashMap;

use granit_parser::{Event, Options, Parser, ScalarStyle, Span, StrInput, Tag};
use serde_json::{Map, Value};

pub(crate) use error::YamlError;
pub(crate) use scalar::text;

/// Bytes of a text: more would fit into no `ConfigMap`.
pub(crate) const MAX_BYTES: usize = 1 << 20;
/// Lists and maps within each other, in the text and after its aliases are filled in.
const MAX_DEPTH: usize = 100;
/// What all values may weigh, aliases filled in: texts by their bytes, and [`NODE`] for each value.
const MAX_WEIGHT: usize = 4 << 20;
const NODE: usize = 32;

/// Reads one document. A text without any value gives null.
///
/// # Errors
/// A [`YamlError`] that says where the text is wrong, or which bound it breaks.
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
        // As for fabric8, documents without a value don't count: a text may end in `---`.
        match composer.node(event, span, 0)?.value {
            Value::Null => {}
            _ if !document.is_null() => return Err(YamlError::Several { line }),
            value => document = value,
        }
    }
    Ok(document)
}

fn options() -> Options {
    let mut options = Options::default();
    options.set_emit_comments(false);
    options.flow_nesting_limit = MAX_DEPTH;
    options.block_nesting_limit = MAX_DEPTH;
    options
}

/// A value, and what it costs to repeat it.
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

    /// One value. It recurses as deep as [`MAX_DEPTH`] allows.
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

    /// For a value that isn't there the parser says `~`. Where the text itself says so, it is a text to Spark's reader.
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
                return Err(YamlError::Duplicate { key: name, line });
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

/// A list or map may say its own type, and no other.
fn collection_tag(tag: Option<&Tag>, own: &str, line: usize) -> Result<(), YamlError> {
    match tag {
        Some(tag) if tag.core_suffix() != Some(own) => Err(YamlError::Tag { tag: tag.original(), line }),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;
