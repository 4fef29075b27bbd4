//! Volumes of `ConfigMap`s and Secrets, and their mounts in the driver's container.

use k8s_openapi::api::core::v1::{ConfigMapVolumeSource, KeyToPath, SecretVolumeSource, Volume, VolumeMount};

/// Returns a volume of a `ConfigMap`, with all or some of its entries.
pub(crate) fn config_map(volume: &str, map: String, items: Option<Vec<KeyToPath>>) -> Volume {
    let source = ConfigMapVolumeSource { name: map, items, ..Default::default() };
    Volume { name: volume.to_owned(), config_map: Some(source), ..Default::default() }
}

/// Returns a volume of a whole Secret.
pub(super) fn secret(volume: &str, secret: String) -> Volume {
    let source = SecretVolumeSource { secret_name: Some(secret), ..Default::default() };
    Volume { name: volume.to_owned(), secret: Some(source), ..Default::default() }
}

/// Returns one entry as a file of the volume.
pub(crate) fn item(key: &str, path: &str) -> KeyToPath {
    KeyToPath { key: key.to_owned(), path: path.to_owned(), ..Default::default() }
}

/// Returns a mount of the whole volume at a path.
pub(crate) fn mount(volume: &str, path: &str) -> VolumeMount {
    VolumeMount { name: volume.to_owned(), mount_path: path.to_owned(), ..Default::default() }
}
