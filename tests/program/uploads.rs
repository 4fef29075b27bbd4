//! `kill -9` of a gateway in each phase of an upload, and clients that continue it.

use std::{
    fs::{self, File},
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use sha2::{Digest, Sha256};
use sparkgate_testing::{
    gateway::{Gateway, sparkgate, until},
    kube_apiserver::KubeApiserver,
    process::free_address,
};
use sqlx::{Connection, PgConnection};

use crate::crash::Place;

const MIB: usize = 1 << 20;
/// More than one part.
const SIZE: usize = 66 * MIB;

/// A gateway with a store of files, which begins again at the same address.
struct Site {
    place: Place,
    store: PathBuf,
    address: SocketAddr,
}

impl Site {
    async fn new(dir: &Path) -> Self {
        let place = Place::new(KubeApiserver::start().await).await;
        Self { place, store: dir.join("store"), address: free_address() }
    }

    fn start(&self) -> Gateway {
        let mut command = sparkgate();
        command.args(["serve", "--listen", &self.address.to_string(), "--namespaces", &self.place.namespace]);
        command.arg("--kubeconfig").arg(&self.place.kubeconfig).env("SPARKGATE_DATABASE_URL", &self.place.database);
        command.arg("--files-url").arg(&self.store).args(["--files-base-url", "http://gateway:6066"]);
        Gateway::start(command, self.address, false)
    }

    /// Sends the head of a request about a file.
    fn begin(&self, method: &str, sha256: &str, headers: &[(&str, String)]) -> TcpStream {
        let mut stream = TcpStream::connect(self.address).unwrap();
        let mut head =
            format!("{method} /v1/files/{sha256} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n", self.address);
        for (name, value) in headers {
            head += &format!("{name}: {value}\r\n");
        }
        stream.write_all(format!("{head}\r\n").as_bytes()).unwrap();
        stream
    }

    /// Begins to append to an upload.
    fn append(&self, sha256: &str, offset: usize, length: usize) -> TcpStream {
        let headers = [
            ("content-type", "application/partial-upload".to_owned()),
            ("content-length", length.to_string()),
            ("upload-offset", offset.to_string()),
            ("upload-complete", "?1".to_owned()),
        ];
        self.begin("PATCH", sha256, &headers)
    }

    /// Returns how much of a file has arrived.
    fn arrived(&self, sha256: &str) -> usize {
        let head = reply(self.begin("HEAD", sha256, &[])).to_ascii_lowercase();
        let offset = head.lines().find_map(|line| line.strip_prefix("upload-offset: "));
        offset.unwrap_or_else(|| panic!("{head}")).trim().parse().unwrap()
    }

    /// Returns how much of all uploads is recorded.
    async fn recorded(&self) -> usize {
        let mut connection = PgConnection::connect(&self.place.database).await.unwrap();
        let sum = sqlx::query_scalar("SELECT coalesce(sum(received), 0)::bigint FROM file_uploads");
        let sum: i64 = sum.fetch_one(&mut connection).await.unwrap();
        usize::try_from(sum).unwrap()
    }

    /// Returns the objects in the store, and the files that are being written.
    fn objects(&self) -> (usize, usize) {
        fn walk(dir: &Path) -> Vec<PathBuf> {
            let Ok(entries) = fs::read_dir(dir) else { return Vec::new() };
            let entries = entries.filter_map(|entry| Some(entry.ok()?.path()));
            entries.flat_map(|path| if path.is_dir() { walk(&path) } else { vec![path] }).collect()
        }
        let mut all = walk(&self.store);
        // Not an upload: it says which database the store belongs to.
        all.retain(|path| !path.to_string_lossy().ends_with("-generation"));
        let unfinished = all.iter().filter(|path| path.to_string_lossy().contains('#')).count();
        (all.len() - unfinished, unfinished)
    }
}

/// Returns a response, as far as it arrives.
fn reply(mut stream: TcpStream) -> String {
    let mut text = Vec::new();
    let _ = stream.read_to_end(&mut text);
    String::from_utf8_lossy(&text).into_owned()
}

fn content() -> (Vec<u8>, String) {
    let content: Vec<u8> = (0..SIZE).map(|at| (at / 1000 % 251) as u8).collect();
    let hash = Sha256::digest(&content).iter().map(|byte| format!("{byte:02x}")).collect();
    (content, hash)
}

#[tokio::test]
async fn an_upload_continues_after_kill_dash_nine_in_each_phase() {
    let dir = tempfile::tempdir().unwrap();
    let site = Site::new(dir.path()).await;
    let (content, hash) = content();

    // While the second part arrives: the first one is kept.
    let gateway = site.start();
    let mut stream = site.append(&hash, 0, SIZE);
    stream.write_all(&content[..65 * MIB]).unwrap();
    while site.recorded().await == 0 {
        tokio::task::yield_now().await;
    }
    gateway.kill_dash_nine();
    drop(stream);
    let gateway = site.start();
    let arrived = site.arrived(&hash);
    assert!((64 * MIB..65 * MIB).contains(&arrived), "{arrived}");
    let missing = reply(site.begin("GET", &hash, &[]));
    assert!(missing.starts_with("HTTP/1.1 404"), "{missing}");

    // While the parts are joined.
    let mut stream = site.append(&hash, arrived, SIZE - arrived);
    let (_, unfinished) = site.objects();
    stream.write_all(&content[arrived..]).unwrap();
    until("the parts are being joined", || {
        let (objects, now) = site.objects();
        objects == 2 && now > unfinished
    });
    gateway.kill_dash_nine();
    assert!(!reply(stream).starts_with("HTTP/1.1 2"));
    let gateway = site.start();
    assert_eq!(site.arrived(&hash), SIZE);

    // The end alone completes it.
    let done = reply(site.append(&hash, SIZE, 0));
    assert!(done.starts_with("HTTP/1.1 201"), "{done}");
    assert_eq!((site.objects().0, site.recorded().await), (1, 0));
    let mut read = site.begin("GET", &hash, &[]);
    let mut whole = Vec::new();
    read.read_to_end(&mut whole).unwrap();
    assert!(whole.ends_with(&content), "the content differs");
    drop(gateway);
}

/// A client that ends with its test.
struct Client(Child);

impl Drop for Client {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[tokio::test]
async fn the_command_line_continues_an_upload_when_its_gateway_was_killed() {
    let dir = tempfile::tempdir().unwrap();
    let site = Site::new(dir.path()).await;
    let (content, hash) = content();
    let file = dir.path().join("job.jar");
    fs::write(&file, &content).unwrap();

    let gateway = site.start();
    let notes = dir.path().join("notes");
    let mut command: Command = sparkgate();
    command.args(["files", "upload"]).arg(&file).env("SPARKGATE_URL", format!("http://{}", site.address));
    command.env_remove("SPARKGATE_TOKEN").env("SPARKGATE_CONFIG", dir.path().join("none"));
    command.stdout(Stdio::piped()).stderr(File::create(&notes).unwrap());
    let mut client = Client(command.spawn().unwrap());
    while site.recorded().await == 0 {
        assert!(client.0.try_wait().unwrap().is_none(), "{}", fs::read_to_string(&notes).unwrap());
    }
    gateway.kill_dash_nine();
    let gateway = site.start();
    let mut printed = String::new();
    client.0.stdout.take().unwrap().read_to_string(&mut printed).unwrap();
    let status = client.0.wait().unwrap();
    let notes = fs::read_to_string(&notes).unwrap();
    assert!(status.success(), "{notes}\n{}", gateway.log());
    assert_eq!(printed, format!("sparkgate-file:/{hash}/job.jar\n"));
    assert!(notes.contains("uploaded job.jar (66.0 MiB"), "{notes}");
    assert_eq!((site.objects().0, site.recorded().await), (1, 0));
}
