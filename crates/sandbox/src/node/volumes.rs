//! A pod's volumes as directories on this machine.

use std::path::{Path, PathBuf};

use k8s_openapi::api::core::v1::{Container, KeyToPath, PodSpec, Volume, VolumeProjection};
use tokio::fs;

use super::fault::Fault;
use super::objects::{Entries, Objects};
use super::paths::PathMap;

/// The directories for volumes.
pub(super) struct Places<'a> {
    /// The pod's own directory, which is removed with the pod.
    pub(super) pod: &'a Path,
    /// A directory with one subdirectory for each `PersistentVolumeClaim` of the namespace; these outlive pods.
    pub(super) claims: &'a Path,
}

/// Creates the volumes that the container mounts as directories, and adds each mount to `paths`.
///
/// `expand` resolves `$(NAME)` in `subPathExpr`.
pub(super) async fn materialise(
    spec: &PodSpec,
    container: &Container,
    places: &Places<'_>,
    objects: &Objects,
    expand: impl Fn(&str) -> String,
    paths: &mut PathMap,
) -> Result<(), Fault> {
    for mount in container.volume_mounts.iter().flatten() {
        let volume = spec.volumes.iter().flatten().find(|v| v.name == mount.name).ok_or_else(|| {
            Fault::refused("CreateContainerConfigError", format!("the pod has no volume {:?} to mount", mount.name))
        })?;
        let root = directory(volume, places, objects).await?;
        let below =
            mount.sub_path_expr.as_deref().filter(|e| !e.is_empty()).map(&expand).or_else(|| mount.sub_path.clone());
        let here = match below.filter(|below| !below.is_empty()) {
            Some(below) => root.join(relative(&below)?),
            None => root,
        };
        // Like a kubelet, creates a missing subPath as a directory.
        if fs::metadata(&here).await.is_err() {
            fs::create_dir_all(&here).await.map_err(|e| unwritable(&here, &e))?;
        }
        paths.insert(&mount.mount_path, &here);
    }
    Ok(())
}

async fn directory(volume: &Volume, places: &Places<'_>, objects: &Objects) -> Result<PathBuf, Fault> {
    if let Some(host) = &volume.host_path {
        return Ok(PathBuf::from(&host.path));
    }
    let dir = match &volume.persistent_volume_claim {
        Some(claim) => places.claims.join(relative(&claim.claim_name)?),
        None => places.pod.join("volumes").join(relative(&volume.name)?),
    };
    fs::create_dir_all(&dir).await.map_err(|e| unwritable(&dir, &e))?;
    if let Some(map) = &volume.config_map {
        let entries = required(objects.config_map(&map.name).await?, "configmap", &map.name, map.optional)?;
        write(&dir, &entries, map.items.as_deref()).await?;
    } else if let Some(secret) = &volume.secret {
        let name = secret.secret_name.as_deref().unwrap_or_default();
        let entries = required(objects.secret(name).await?, "secret", name, secret.optional)?;
        write(&dir, &entries, secret.items.as_deref()).await?;
    } else if let Some(projected) = &volume.projected {
        for source in projected.sources.iter().flatten() {
            project(&dir, source, objects).await?;
        }
    } else if volume.empty_dir.is_none() && volume.persistent_volume_claim.is_none() && volume.ephemeral.is_none() {
        let text = format!("the sandbox does not support the type of the volume {:?}", volume.name);
        return Err(Fault::refused("CreateContainerConfigError", text));
    }
    Ok(dir)
}

/// Writes a source of a projected volume. Only `ConfigMap`s and Secrets are supported; there are no service account tokens
/// here.
async fn project(dir: &Path, source: &VolumeProjection, objects: &Objects) -> Result<(), Fault> {
    if let Some(map) = &source.config_map {
        let entries = required(objects.config_map(&map.name).await?, "configmap", &map.name, map.optional)?;
        write(dir, &entries, map.items.as_deref()).await?;
    }
    if let Some(secret) = &source.secret {
        let entries = required(objects.secret(&secret.name).await?, "secret", &secret.name, secret.optional)?;
        write(dir, &entries, secret.items.as_deref()).await?;
    }
    Ok(())
}

fn required(found: Option<Entries>, kind: &str, name: &str, optional: Option<bool>) -> Result<Entries, Fault> {
    match found {
        Some(entries) => Ok(entries),
        None if optional == Some(true) => Ok(Entries::new()),
        None => Err(Fault::NotYet(format!("{kind} {name:?} not found"))),
    }
}

/// Writes all entries, or the listed items under their paths.
async fn write(dir: &Path, entries: &Entries, items: Option<&[KeyToPath]>) -> Result<(), Fault> {
    let chosen: Vec<(&str, &str)> = match items {
        Some(items) => items.iter().map(|item| (item.key.as_str(), item.path.as_str())).collect(),
        None => entries.keys().map(|key| (key.as_str(), key.as_str())).collect(),
    };
    for (key, path) in chosen {
        let content =
            entries.get(key).ok_or_else(|| Fault::NotYet(format!("references non-existent config key: {key}")))?;
        let file = dir.join(relative(path)?);
        let parent = file.parent().unwrap_or(dir);
        fs::create_dir_all(parent).await.map_err(|e| unwritable(parent, &e))?;
        fs::write(&file, content).await.map_err(|e| unwritable(&file, &e))?;
    }
    Ok(())
}

/// Checks that a path stays inside its volume, even if an API server has accepted it.
fn relative(path: &str) -> Result<&Path, Fault> {
    let relative = Path::new(path);
    let inside = relative.components().all(|part| matches!(part, std::path::Component::Normal(_)));
    if inside && !path.is_empty() {
        return Ok(relative);
    }
    Err(Fault::refused("CreateContainerConfigError", format!("the path {path:?} leaves its volume")))
}

fn unwritable(path: &Path, error: &std::io::Error) -> Fault {
    Fault::NotYet(format!("cannot write {}: {error}", path.display()))
}
