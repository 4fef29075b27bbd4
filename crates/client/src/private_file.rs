//! Files that hold secrets: refused while other users can read them, and created so that no other user ever can.

use std::{
    fs::{self, DirBuilder, File},
    io::{self, Read, Write},
    os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt},
    path::Path,
};

use rustix::{
    fs::{StatVfsMountFlags, fstatvfs},
    process::geteuid,
};

use super::error::Error;

/// A lock between processes. Dropping it releases it.
#[derive(Debug)]
pub(super) struct Lock {
    _file: File,
}

impl Lock {
    /// Waits for the lock of this file, and creates the file if necessary.
    ///
    /// # Errors
    /// The file can't be created or locked.
    pub(super) fn take(path: &Path) -> Result<Self, Error> {
        create_folder(path)?;
        let failed = |error: io::Error| Error::Here(format!("locking {}: {error}", path.display()));
        let open = File::options().create(true).truncate(false).write(true).mode(0o600).open(path);
        let file = open.map_err(failed)?;
        file.lock().map_err(failed)?;
        Ok(Self { _file: file })
    }
}

/// Reads a file that holds secrets. Returns `None` if it doesn't exist.
///
/// # Errors
/// The file can't be read, or other users can read it.
pub(super) fn read(path: &Path) -> Result<Option<String>, Error> {
    match Text::read(path)? {
        Some(text) if text.is_exposed => Err(exposed(path)),
        text => Ok(text.map(|text| text.text)),
    }
}

/// Returns the refusal of a file that other users can read, as `ssh` refuses such keys.
pub(super) fn exposed(path: &Path) -> Error {
    let path = path.display();
    Error::Here(format!("{path} holds a secret, and other users can read it: run `chmod 600 {path}`"))
}

/// The text of a file that may hold secrets.
pub(super) struct Text {
    pub(super) text: String,
    /// Other users can read the file, and this user can change that.
    pub(super) is_exposed: bool,
}

impl Text {
    /// Reads a file. Returns `None` if it doesn't exist.
    ///
    /// # Errors
    /// The file can't be read.
    pub(super) fn read(path: &Path) -> Result<Option<Self>, Error> {
        let open = || {
            let mut file = File::open(path)?;
            let mut text = String::new();
            file.read_to_string(&mut text)?;
            Ok::<_, io::Error>(Self { text, is_exposed: is_exposed(&file)? })
        };
        match open() {
            Ok(text) => Ok(Some(text)),
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => Ok(None),
            Err(error) => Err(Error::Here(format!("reading {}: {error}", path.display()))),
        }
    }
}

/// Returns whether other users can read a file that this user can change. A file of a mounted Secret (Kubernetes) belongs to
/// root or is on a read-only file system: its mode is not this user's choice.
fn is_exposed(file: &File) -> io::Result<bool> {
    let metadata = file.metadata()?;
    let is_own = metadata.uid() == geteuid().as_raw();
    let is_read_only = || fstatvfs(file).is_ok_and(|system| system.f_flag.contains(StatVfsMountFlags::RDONLY));
    Ok(metadata.is_file() && metadata.mode() & 0o077 != 0 && is_own && !is_read_only())
}

/// Replaces a file in one step, or creates it. Only this user can read it, from its first byte on.
///
/// # Errors
/// The file or its folder can't be written.
pub(super) fn write(path: &Path, text: &str) -> Result<(), Error> {
    // A link stays a link.
    let path = &fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    create_folder(path)?;
    let failed = |error: io::Error| Error::Here(format!("writing {}: {error}", path.display()));
    let folder = path.parent().unwrap_or_else(|| Path::new("/"));
    // Its mode is 0600 when it is created.
    let mut file = tempfile::Builder::new().prefix(".sparkgate-").tempfile_in(folder).map_err(failed)?;
    file.write_all(text.as_bytes()).and_then(|()| file.as_file().sync_all()).map_err(failed)?;
    file.persist(path).map_err(|error| failed(error.error))?;
    Ok(())
}

/// Creates the folder of a file, with mode 0700, if it doesn't exist.
fn create_folder(path: &Path) -> Result<(), Error> {
    let folder = path.parent().unwrap_or_else(|| Path::new("/"));
    let created = DirBuilder::new().recursive(true).mode(0o700).create(folder);
    created.map_err(|error| Error::Here(format!("creating the folder {}: {error}", folder.display())))
}

#[cfg(test)]
mod tests {
    use std::{
        fs::Permissions,
        os::unix::fs::{PermissionsExt, symlink},
    };

    use super::*;

    #[test]
    fn a_file_that_other_users_can_read_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        assert_eq!(read(&path).unwrap(), None);
        fs::write(&path, "s3cret").unwrap();
        for (mode, fine) in [(0o644, false), (0o640, false), (0o604, false), (0o600, true), (0o400, true)] {
            fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            match read(&path) {
                Ok(text) => assert!(fine && text.as_deref() == Some("s3cret"), "{mode:o}"),
                Err(error) => {
                    let error = error.to_string();
                    assert!(!fine && error.contains(&format!("`chmod 600 {}`", path.display())), "{mode:o}: {error}");
                    assert!(!error.contains("s3cret"), "{error}");
                }
            }
        }
    }

    #[test]
    fn a_written_file_and_its_folder_are_private() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config/sparkgate/credentials.yaml");
        let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o777;
        write(&path, "one").unwrap();
        assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
        fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
        write(&path, "two").unwrap();
        assert_eq!((mode(&path), fs::read_to_string(&path).unwrap().as_str()), (0o600, "two"));
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1, "no temporary file is left");
    }

    #[test]
    fn a_link_to_a_file_stays_one() {
        let folder = tempfile::tempdir().unwrap();
        let (link, file) = (folder.path().join("config.yaml"), folder.path().join("dotfiles.yaml"));
        fs::write(&file, "").unwrap();
        symlink(&file, &link).unwrap();
        write(&link, "new").unwrap();
        assert!(link.is_symlink() && fs::read_to_string(&file).unwrap() == "new");
    }
}
