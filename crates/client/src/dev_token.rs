//! The token of a `sparkgate dev` of the same user, which it writes into a file at its start.

use std::{
    fs::{self, File},
    io::Read,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use rustix::process::geteuid;
use secrecy::SecretString;

use super::server::Server;

/// Returns the token for a gateway on this machine and its file, if a `sparkgate dev` of this user has written one for the
/// gateway's port.
pub(super) fn find(server: &Server) -> Option<(SecretString, PathBuf)> {
    let path = file(geteuid().is_root(), |name| std::env::var_os(name).map(PathBuf::from))?;
    let token = read(&path, server)?;
    Some((token, path))
}

/// Returns the file: in the folder that `sparkgate dev` uses, too.
fn file(is_root: bool, variable: impl Fn(&str) -> Option<PathBuf>) -> Option<PathBuf> {
    let variable = |name| variable(name).filter(|path| !path.as_os_str().is_empty());
    let default = || match is_root {
        true => Some(PathBuf::from("/var/lib/sparkgate-dev")),
        false => {
            let state = variable("XDG_STATE_HOME").or_else(|| Some(variable("HOME")?.join(".local/state")));
            Some(state?.join("sparkgate-dev"))
        }
    };
    Some(variable("SPARKGATE_DEV_DIR").or_else(default)?.join("token"))
}

/// Reads the file: the gateway's URL, a blank and the token. A file that another user has or can read is ignored.
fn read(path: &Path, server: &Server) -> Option<SecretString> {
    // It could be a pipe, which blocks.
    if !server.is_loopback() || !fs::symlink_metadata(path).ok()?.is_file() {
        return None;
    }
    let mut file = File::open(path).ok()?;
    let metadata = file.metadata().ok()?;
    if metadata.uid() != geteuid().as_raw() || metadata.mode() & 0o077 != 0 {
        return None;
    }
    let mut text = String::new();
    file.read_to_string(&mut text).ok()?;
    let (url, token) = text.lines().next()?.split_once(' ')?;
    let of: Server = url.parse().ok()?;
    let token = token.trim();
    (of.is_loopback() && of.port() == server.port() && !token.is_empty()).then(|| token.into())
}

#[cfg(test)]
mod tests {
    use std::{fs::Permissions, os::unix::fs::PermissionsExt};

    use secrecy::ExposeSecret;

    use super::*;

    #[test]
    fn the_token_is_where_dev_writes_it() {
        let path = |is_root, variables: &[(&str, &str)]| {
            file(is_root, |name| Some(variables.iter().find(|(variable, _)| *variable == name)?.1.into()))
        };
        let (home, state) = (("HOME", "/home/a"), ("XDG_STATE_HOME", "/state"));
        assert_eq!(path(false, &[home]), Some("/home/a/.local/state/sparkgate-dev/token".into()));
        assert_eq!(path(false, &[home, state]), Some("/state/sparkgate-dev/token".into()));
        assert_eq!(path(true, &[home, state]), Some("/var/lib/sparkgate-dev/token".into()));
        assert_eq!(path(true, &[home, ("SPARKGATE_DEV_DIR", "/d")]), Some("/d/token".into()));
        assert_eq!(path(false, &[]), None);
    }

    #[test]
    fn a_token_is_for_the_port_of_its_gateway_and_private() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        let token = |text: &str, mode, url: &str| {
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            read(&path, &url.parse().unwrap()).map(|token| token.expose_secret().to_owned())
        };
        let text = "http://127.0.0.1:6066 s3cret\n";
        for url in ["http://127.0.0.1:6066", "http://localhost:6066", "http://[::1]:6066"] {
            assert_eq!(token(text, 0o600, url).as_deref(), Some("s3cret"), "{url}");
        }
        for (text, mode, url) in [
            (text, 0o644, "http://127.0.0.1:6066"),
            (text, 0o600, "http://127.0.0.1:6067"),
            (text, 0o600, "http://gateway.example:6066"),
            ("http://gateway.example:6066 s3cret", 0o600, "http://127.0.0.1:6066"),
            ("s3cret", 0o600, "http://127.0.0.1:6066"),
            ("http://127.0.0.1:6066 ", 0o600, "http://127.0.0.1:6066"),
        ] {
            assert_eq!(token(text, mode, url), None, "{text} {mode:o} {url}");
        }
        fs::remove_file(&path).unwrap();
        assert!(read(&path, &"http://127.0.0.1:6066".parse().unwrap()).is_none());
    }
}
