//! Reads the one text of a result from Arrow's streaming format (<https://arrow.apache.org/docs/format/Columnar.html#ipc-streaming-format>):
//! Spark sends every result in it, also a table that it made a text of. The few parts that such a result has are read here, so that the
//! client needs no library for all of them.

/// `Type.Utf8` of Arrow's `Schema.fbs`.
const UTF8: u8 = 5;
/// `MessageHeader` of Arrow's `Message.fbs`.
const SCHEMA: u8 = 1;
const RECORD_BATCH: u8 = 3;

/// Returns the text in the first row of the first column, which has the type of texts. `None` if the data is anything else.
pub(super) fn first_text(data: &[u8]) -> Option<String> {
    let mut rest = data;
    let mut is_text = false;
    loop {
        // A message is its mark, the length of its head, the head, and the body.
        let mark = read_u32(rest, 0)?;
        let length = usize::try_from(read_u32(rest, 4)?).ok()?;
        if mark != u32::MAX || length == 0 {
            return None;
        }
        let head = rest.get(8..8 + length)?;
        let message = Table { data: head, at: usize::try_from(read_u32(head, 0)?).ok()? };
        let body_length = message.field(3).map_or(Some(0), |at| read_usize(head, at))?;
        let body = rest.get(8 + length..)?.get(..body_length)?;
        match message.byte(1)? {
            SCHEMA => is_text = is_text_schema(&message.table(2)?)?,
            RECORD_BATCH if is_text => return text_of(&message.table(2)?, body),
            _ => return None,
        }
        rest = rest.get(8 + length + body_length..)?;
    }
}

fn is_text_schema(schema: &Table<'_>) -> Option<bool> {
    let (first, count) = schema.vector(1)?;
    let column = Table { data: schema.data, at: first }.followed()?;
    Some(count == 1 && column.byte(2)? == UTF8)
}

/// Reads the text from the buffers of a batch: which rows aren't null, where each text begins, and the texts.
fn text_of(batch: &Table<'_>, body: &[u8]) -> Option<String> {
    let is_compressed = batch.field(3).is_some();
    let (first, count) = batch.vector(2)?;
    if is_compressed || count < 3 || read_usize(batch.data, batch.field(0)?)? == 0 {
        return None;
    }
    let buffer = |index: usize| {
        let at = first + 16 * index;
        let (offset, length) = (read_usize(batch.data, at)?, read_usize(batch.data, at + 8)?);
        body.get(offset..)?.get(..length)
    };
    let (offsets, texts) = (buffer(1)?, buffer(2)?);
    let (begin, end) = (read_u32(offsets, 0)?, read_u32(offsets, 4)?);
    let text = texts.get(usize::try_from(begin).ok()?..usize::try_from(end).ok()?)?;
    Some(String::from_utf8_lossy(text).into_owned())
}

/// A table of `FlatBuffers`: a table of offsets of its fields, some of which may be absent.
struct Table<'a> {
    data: &'a [u8],
    at: usize,
}

impl Table<'_> {
    /// Returns where a field is. `None` if it has its default.
    fn field(&self, index: usize) -> Option<usize> {
        let back = i32::from_le_bytes(bytes(self.data, self.at)?);
        let offsets = usize::try_from(i64::try_from(self.at).ok()? - i64::from(back)).ok()?;
        let size = usize::from(u16::from_le_bytes(bytes(self.data, offsets)?));
        let entry = 4 + 2 * index;
        let offset = (entry + 2 <= size).then(|| bytes(self.data, offsets + entry).map(u16::from_le_bytes))??;
        (offset != 0).then(|| self.at + usize::from(offset))
    }

    fn byte(&self, index: usize) -> Option<u8> {
        self.data.get(self.field(index)?).copied()
    }

    /// Returns the table that this place points to.
    fn followed(&self) -> Option<Self> {
        let at = self.at + usize::try_from(read_u32(self.data, self.at)?).ok()?;
        Some(Self { data: self.data, at })
    }

    fn table(&self, index: usize) -> Option<Self> {
        Self { data: self.data, at: self.field(index)? }.followed()
    }

    /// Returns where the elements of a vector begin, and their number.
    fn vector(&self, index: usize) -> Option<(usize, usize)> {
        let at = self.table(index)?.at;
        Some((at + 4, usize::try_from(read_u32(self.data, at)?).ok()?))
    }
}

fn bytes<const N: usize>(data: &[u8], at: usize) -> Option<[u8; N]> {
    data.get(at..)?.first_chunk().copied()
}

fn read_u32(data: &[u8], at: usize) -> Option<u32> {
    bytes(data, at).map(u32::from_le_bytes)
}

fn read_usize(data: &[u8], at: usize) -> Option<usize> {
    usize::try_from(i64::from_le_bytes(bytes(data, at)?)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    // Streams of PyArrow with one batch: the text of a table, and a number.
    const TABLE: &str = "\
        ffffffff780000001000000000000a000c000600050008000a000000000104000c000000080008000000040008000000040000000100000014000000\
        100014000800060007000c00000010001000000000000105100000002000000004000000000000000b00000073686f775f737472696e670004000400\
        0400000000000000ffffffff9800000014000000000000000c0016000600050008000c000c0000000003040018000000180000000000000000000a00\
        18000c00040008000a0000004c0000001000000001000000000000000000000003000000000000000000000000000000000000000000000000000000\
        080000000000000008000000000000000d00000000000000000000000100000001000000000000000000000000000000000000000d0000002b2d2b0a\
        7cc3a47c0a2b2d2b0a000000ffffffff00000000";
    const NUMBER: &str = "\
        ffffffff780000001000000000000a000c000600050008000a000000000104000c000000080008000000040008000000040000000100000014000000\
        100014000800060007000c00000010001000000000000102100000001c0000000400000000000000010000006e00000008000c000800070008000000\
        0000000140000000ffffffff8800000014000000000000000c0016000600050008000c000c0000000003040018000000080000000000000000000a00\
        18000c00040008000a0000003c0000001000000001000000000000000000000002000000000000000000000000000000000000000000000000000000\
        08000000000000000000000001000000010000000000000000000000000000000700000000000000ffffffff00000000";

    fn bytes_of(hex: &str) -> Vec<u8> {
        (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
    }

    #[test]
    fn the_text_of_a_result_is_read() {
        assert_eq!(first_text(&bytes_of(TABLE)).as_deref(), Some("+-+\n|ä|\n+-+\n"));
        assert_eq!(first_text(&bytes_of(NUMBER)), None);
    }

    #[test]
    fn data_that_is_cut_off_or_changed_breaks_nothing() {
        let data = bytes_of(TABLE);
        let batch = data.len() - 8;
        (0..batch).for_each(|end| assert_eq!(first_text(&data[..end]), None, "{end}"));
        for at in 0..data.len() {
            for value in [0, 1, 0x7f, 0xff] {
                let mut changed = data.clone();
                changed[at] = value;
                let _ = first_text(&changed);
            }
        }
    }
}
