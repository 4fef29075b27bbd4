//! A lock that allows one `dev` at a time for each directory.

use std::{
    fs::{File, OpenOptions, TryLockError},
    io::{Read, Seek, Write},
    path::Path,
};

use anyhow::{Context, bail};

/// The lock of a directory, held until this value is dropped. The kernel releases it when the process ends, however it
/// ends.
#[derive(Debug)]
pub(super) struct Lock(#[expect(dead_code, reason = "kept open: closing it releases the lock")] File);

impl Lock {
    /// Acquires the lock of a directory, or fails at once if another process holds it.
    pub(super) fn take(dir: &Path) -> anyhow::Result<Self> {
        let path = dir.join("lock");
        let context = || format!("locking {}", path.display());
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path);
        let mut file = file.with_context(context)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut pid = String::new();
                // Empty if the other process has acquired the lock and hasn't written its pid yet.
                let _ = file.read_to_string(&mut pid);
                bail!(
                    "another sparkgate dev (pid {}) uses the directory {}: stop it, or give another --dir",
                    pid.trim(),
                    dir.display()
                );
            }
            Err(TryLockError::Error(error)) => return Err(error).with_context(context),
        }
        let write = |file: &mut File| {
            file.set_len(0)?;
            file.rewind()?;
            writeln!(file, "{}", std::process::id())
        };
        write(&mut file).with_context(context)?;
        Ok(Self(file))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn second_lock_fails_with_the_pid_of_the_first_until_the_first_is_released() {
        let dir = tempfile::tempdir().unwrap();
        let first = Lock::take(dir.path()).unwrap();
        let error = Lock::take(dir.path()).unwrap_err().to_string();
        let pid = std::process::id();
        assert!(error.contains(&format!("another sparkgate dev (pid {pid}) uses the directory")), "{error}");
        drop(first);
        // A process that another test forks at this moment may hold a copy of the lock until its program begins.
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(10);
        while let Err(error) = Lock::take(dir.path()) {
            assert!(std::time::Instant::now() < deadline, "{error}");
            std::thread::yield_now();
        }
    }
}
