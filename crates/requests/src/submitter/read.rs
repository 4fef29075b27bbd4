//! Reads the submitter directory.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use k8s_openapi::ByteString;

use super::{DEFAULTS, Files, Properties, Submitter};
use sparkgate_spark::parse_properties;

/// All files end up in `ConfigMap`s and Secrets, which hold no more than that.
const FILE_MAX: u64 = 1 << 20;
const FOLDERS: [&str; 4] = ["defaults", "files", "spark-conf", "hadoop-conf"];

/// The submitter directory can't be used.
#[derive(Debug, thiserror::Error)]
pub enum SubmitterError {
    #[error("can't read {} (--submitter-dir)", path.display())]
    Read { path: PathBuf, source: io::Error },
    /// Reported at start, so that no submission fails because of it.
    #[error("{} (--submitter-dir) {problem}", path.display())]
    Unfit { path: PathBuf, problem: String },
}

impl Submitter {
    /// Reads the directory: `defaults/<name>.conf`, `files/`, `spark-conf/` and `hadoop-conf/`, each of them optional.
    /// Hidden entries are skipped. A symbolic link must not point outside of the directory; those of a mounted `ConfigMap` or
    /// Secret don't.
    ///
    /// # Errors
    /// A [`SubmitterError`] that names the file.
    pub fn read(dir: &Path) -> Result<Self, SubmitterError> {
        let folder = Folder::of(dir)?;
        if let Some(unknown) = folder.names()?.into_iter().find(|name| !FOLDERS.contains(&name.as_str())) {
            return Err(unfit(&dir.join(unknown), format!("is none of {}", FOLDERS.join(", "))));
        }
        let spark_conf = folder.files("spark-conf")?.unwrap_or_default();
        if spark_conf.contains_key("spark-defaults.conf") {
            let problem = "would be ignored: move it to defaults/<name>.conf, or give it as --spark-defaults";
            return Err(unfit(&dir.join("spark-conf/spark-defaults.conf"), problem));
        }
        let defaults = folder.files("defaults")?.unwrap_or_default();
        Ok(Self {
            defaults: defaults.iter().map(|(name, text)| named(dir, name, text)).collect::<Result<_, _>>()?,
            files: folder.files("files")?.unwrap_or_default(),
            spark_conf,
            hadoop_conf: folder.files("hadoop-conf")?,
        })
    }
}

/// Parses one file of `defaults/`.
fn named(dir: &Path, name: &str, ByteString(text): &ByteString) -> Result<(String, Properties), SubmitterError> {
    let unfit = |problem| unfit(&dir.join("defaults").join(name), problem);
    let stem = name.strip_suffix(".conf").filter(|stem| is_a_name(stem));
    let stem = stem.ok_or_else(|| unfit("is not called <name>.conf, with a name of letters, digits and -_."))?;
    let text = std::str::from_utf8(text).map_err(|_| unfit("is not UTF-8"))?;
    let properties = parse_properties(text);
    match properties.contains_key(DEFAULTS) {
        true => Err(unfit("sets spark.sparkgate.defaults: named defaults can't choose others")),
        false => Ok((stem.to_owned(), properties)),
    }
}

/// Returns whether Kubernetes accepts the name as a key of a `ConfigMap` (`IsConfigMapKey`). A leading dot hides a file.
fn is_a_name(name: &str) -> bool {
    (1..=253).contains(&name.len()) && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b))
}

struct Folder {
    /// The submitter directory, with symbolic links resolved: every file must be inside of it.
    root: PathBuf,
    path: PathBuf,
}

impl Folder {
    fn of(dir: &Path) -> Result<Self, SubmitterError> {
        let root = fs::canonicalize(dir).map_err(|source| failed(dir, source))?;
        Ok(Self { root, path: dir.to_owned() })
    }

    /// Returns the entries that aren't hidden. (The mount of a `ConfigMap` has hidden ones of its own.)
    fn names(&self) -> Result<Vec<String>, SubmitterError> {
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.path).map_err(|source| failed(&self.path, source))? {
            let entry = entry.map_err(|source| failed(&self.path, source))?;
            let name = entry.file_name().into_string();
            let name = name.map_err(|name| unfit(&self.path.join(name), "has a name that is not UTF-8"))?;
            if !name.starts_with('.') {
                names.push(name);
            }
        }
        Ok(names)
    }

    /// Returns all files of a subdirectory; `None` if it doesn't exist. Their names become keys of `ConfigMap`s and Secrets:
    /// with an editor's `core-site.xml~` among them, the cluster would refuse every driver.
    fn files(&self, name: &str) -> Result<Option<Files>, SubmitterError> {
        let folder = Self { root: self.root.clone(), path: self.path.join(name) };
        match fs::metadata(&folder.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(failed(&folder.path, source)),
            Ok(_) => {}
        }
        let names = folder.names()?;
        if let Some(odd) = names.iter().find(|name| !is_a_name(name)) {
            return Err(unfit(&folder.path.join(odd), "is not a name of letters, digits and -_. alone"));
        }
        names.into_iter().map(|name| Ok((name.clone(), folder.file(&name)?))).collect::<Result<_, _>>().map(Some)
    }

    fn file(&self, name: &str) -> Result<ByteString, SubmitterError> {
        let path = self.path.join(name);
        let target = fs::canonicalize(&path).map_err(|source| failed(&path, source))?;
        if !target.starts_with(&self.root) {
            return Err(unfit(&path, format!("points outside of the directory, to {}", target.display())));
        }
        let metadata = fs::metadata(&target).map_err(|source| failed(&path, source))?;
        if !metadata.is_file() {
            return Err(unfit(&path, "is not a regular file"));
        }
        if metadata.len() > FILE_MAX {
            return Err(unfit(&path, format!("has {} bytes; {FILE_MAX} fit into a driver's objects", metadata.len())));
        }
        fs::read(&target).map(ByteString).map_err(|source| failed(&path, source))
    }
}

fn failed(path: &Path, source: io::Error) -> SubmitterError {
    SubmitterError::Read { path: path.to_owned(), source }
}

fn unfit(path: &Path, problem: impl Into<String>) -> SubmitterError {
    SubmitterError::Unfit { path: path.to_owned(), problem: problem.into() }
}
