//! render
pub(super) fn render(_: &str, _: crate::spark::SparkVersion) -> anyhow::Result<serde_json::Value> {
    Ok(serde_json::Value::Null)
}
