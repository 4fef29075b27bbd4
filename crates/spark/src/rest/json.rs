//! Jackson's default pretty printer, with which Spark writes its replies: sorted keys, `"key" : "value"`, arrays on one line.
//! Some clients read the replies line by line, so the white space matters.

use std::io;

use serde::Serialize;
use serde_json::ser::{CharEscape, Formatter, Serializer};

/// Writes a reply as JSON, without a newline at the end.
///
/// # Errors
/// The reply can't be written as JSON.
pub fn to_json(reply: &impl Serialize) -> Result<String, serde_json::Error> {
    // Converted to a `Value` first, whose maps are sorted.
    let reply = serde_json::to_value(reply)?;
    let mut written = Vec::new();
    reply.serialize(&mut Serializer::with_formatter(&mut written, Jackson { depth: 0, is_empty: false }))?;
    Ok(String::from_utf8_lossy(&written).into_owned())
}

struct Jackson {
    depth: usize,
    is_empty: bool,
}

impl Jackson {
    fn line<W: ?Sized + io::Write>(&self, writer: &mut W) -> io::Result<()> {
        writer.write_all(b"\n")?;
        (0..self.depth).try_for_each(|_| writer.write_all(b"  "))
    }
}

impl Formatter for Jackson {
    fn begin_object<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.depth += 1;
        self.is_empty = true;
        writer.write_all(b"{")
    }

    fn begin_object_key<W: ?Sized + io::Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        self.is_empty = false;
        if !first {
            writer.write_all(b",")?;
        }
        self.line(writer)
    }

    fn begin_object_value<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        writer.write_all(b" : ")
    }

    fn end_object<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.depth -= 1;
        if self.is_empty {
            writer.write_all(b" ")?
        } else {
            self.line(writer)?
        }
        self.is_empty = false;
        writer.write_all(b"}")
    }

    fn begin_array<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        writer.write_all(b"[")
    }

    fn begin_array_value<W: ?Sized + io::Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        writer.write_all(if first { b" " } else { b", " })
    }

    fn end_array<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        writer.write_all(b" ]")
    }

    fn write_char_escape<W: ?Sized + io::Write>(&mut self, writer: &mut W, escape: CharEscape) -> io::Result<()> {
        match escape {
            CharEscape::Quote => writer.write_all(b"\\\""),
            CharEscape::ReverseSolidus => writer.write_all(b"\\\\"),
            CharEscape::Solidus => writer.write_all(b"/"),
            CharEscape::Backspace => writer.write_all(b"\\b"),
            CharEscape::FormFeed => writer.write_all(b"\\f"),
            CharEscape::LineFeed => writer.write_all(b"\\n"),
            CharEscape::CarriageReturn => writer.write_all(b"\\r"),
            CharEscape::Tab => writer.write_all(b"\\t"),
            // Jackson writes hexadecimal digits in upper case.
            CharEscape::AsciiControl(byte) => write!(writer, "\\u{byte:04X}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::to_json;

    #[test]
    fn replies_are_written_as_jackson_writes_them() {
        let reply = json!({
            "success": true, "action": "A", "unknownFields": ["zebra", "a\"\\/\u{1f}\u{7f}é\u{2028}\n"],
            "none": [], "nothing": {}, "inner": {"a": 1, "b": {}},
        });
        let expected = concat!(
            "{\n  \"action\" : \"A\",\n  \"inner\" : {\n    \"a\" : 1,\n    \"b\" : { }\n  },\n",
            "  \"none\" : [ ],\n  \"nothing\" : { },\n  \"success\" : true,\n",
            "  \"unknownFields\" : [ \"zebra\", \"a\\\"\\\\/\\u001F\u{7f}é\u{2028}\\n\" ]\n}",
        );
        assert_eq!(to_json(&reply).unwrap(), expected);
    }
}
