//! An incremental parser for server-sent events (WHATWG HTML, 9.2.6).

/// One event: its `id`, if any, its type, and its joined `data` lines.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Message {
    pub(super) id: Option<String>,
    pub(super) event: String,
    pub(super) data: String,
}

/// Parses a stream of bytes into events.
#[derive(Debug, Default)]
pub(super) struct Reader {
    line: Vec<u8>,
    after_cr: bool,
    message: Message,
    has_data: bool,
    last_id: Option<String>,
}

impl Reader {
    /// Returns the id to continue after: the last one so far, also of a message without data, which is not an event.
    pub(super) fn last_id(&self) -> Option<&String> {
        self.last_id.as_ref()
    }

    /// Returns the events that these bytes complete.
    pub(super) fn take(&mut self, bytes: &[u8]) -> Vec<Message> {
        let mut complete = Vec::new();
        for &byte in bytes {
            let after_cr = std::mem::take(&mut self.after_cr);
            match byte {
                b'\n' if after_cr => {}
                b'\n' | b'\r' => {
                    self.after_cr = byte == b'\r';
                    let line = std::mem::take(&mut self.line);
                    complete.extend(self.line(&String::from_utf8_lossy(&line)));
                }
                _ => self.line.push(byte),
            }
        }
        complete
    }

    fn line(&mut self, line: &str) -> Option<Message> {
        if line.is_empty() {
            let message = std::mem::take(&mut self.message);
            if message.id.is_some() {
                self.last_id.clone_from(&message.id);
            }
            return std::mem::take(&mut self.has_data).then_some(message);
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "id" if !value.contains('\0') => self.message.id = Some(value.to_owned()),
            "event" => value.clone_into(&mut self.message.event),
            "data" => {
                if std::mem::replace(&mut self.has_data, true) {
                    self.message.data.push('\n');
                }
                self.message.data.push_str(value);
            }
            // A comment (a heartbeat), `retry`, and unknown fields are ignored.
            _ => {}
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(id: Option<&str>, event: &str, data: &str) -> Message {
        Message { id: id.map(str::to_owned), event: event.to_owned(), data: data.to_owned() }
    }

    #[test]
    fn events_do_not_depend_on_the_boundaries_of_chunks() {
        let text = "retry: 1000\n\n: heartbeat\n\nid: 7\nevent: state\ndata: {\"a\":\ndata: \"ü\"}\r\n\r\ndata\n\n\
                    id: 8\n\ndata: cut off\n";
        let expected = [message(Some("7"), "state", "{\"a\":\n\"ü\"}"), message(None, "", "")];
        for size in 1..=text.len() {
            let mut reader = Reader::default();
            let read: Vec<_> = text.as_bytes().chunks(size).flat_map(|bytes| reader.take(bytes)).collect();
            assert_eq!(read, expected, "in pieces of {size}");
            assert_eq!(reader.last_id().map(String::as_str), Some("8"), "of a message without data");
        }
    }
}
