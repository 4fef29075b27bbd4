//! `sparkgate sandbox`.
use super::settings::Sandbox;
pub(super) async fn sandbox(_: Sandbox) -> anyhow::Result<()> {
    Ok(())
}
