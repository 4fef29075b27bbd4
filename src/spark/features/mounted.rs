//! Volumes of `ConfigMap`s and Secrets, and where the driver's container sees them.

use k8s_openapi::api::core::v1::{ConfigMapVolumeSource, KeyToPath, SecretVolumeSource, Volume, VolumeMount};

/// A volume of a `ConfigMap`: of all its entries, or only of some.
pub(crate) fn config_map(volume: &str, map: String, items: Option<Vec<KeyToPath>>) -> Volume {
    let source = ConfigMapVolumeSource { name: map, items, ..Default::default() };
    Volume { name: volume.to_owned(), config_map: Some(source), ..Default::default() }
}

/// A volume of a whole Secret.
pub(super) fn secret(volume: &str, secret: String) -> Volume {
    let source = SecretVolumeSource { secret_name: Some(secret), ..Default::default() };
    Volume { name: volume.to_owned(), secret: Some(source), ..Default::default() }
}

/// One entry as a file of the volume.
pub(crate) fn item(key: &str, path: &str) -> KeyToPath {
    KeyToPath { key: key.to_owned(), path: path.to_owned(), ..Default::default() }
}

/// The whole volume at a path.
pub(crate) fn mount(volume: &str, path: &str) -> VolumeMount {
    VolumeMount { name: volume.to_owned(), mount_path: path.to_owned(), ..Default::default() }
}
