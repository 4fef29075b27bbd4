//! One Keycloak for all tests of this binary. Each test has a realm of its own; one test stops the server.

use std::{
    io::{BufRead, BufReader, Write},
    mem,
    net::SocketAddr,
    path::PathBuf,
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    time::Duration,
};

use sparkgate_testing::{http, process::free_address};
use tokio::{
    sync::{Mutex, OnceCell, RwLock, RwLockReadGuard, RwLockWriteGuard},
    time::{Instant, sleep},
};

/// How long the server may take to start, on a busy machine.
const READY: Duration = Duration::from_secs(300);
/// The name and the password of the administrator, as scripts/keycloak has created it.
pub(crate) const ADMINISTRATOR: [&str; 2] = ["admin", "admin"];

static SHARED: OnceCell<Server> = OnceCell::const_new();
static USE: RwLock<()> = RwLock::const_new(());

struct Server {
    address: SocketAddr,
    directory: PathBuf,
    control: Mutex<Control>,
}

/// The script that runs the server. The end of its input, which is that of this process, ends both.
struct Control {
    _script: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    is_stopped: bool,
}

/// The server, while a test uses it.
pub(crate) struct Keycloak {
    server: &'static Server,
    _use: Use,
}

#[expect(dead_code, reason = "held, not read")]
enum Use {
    Shared(RwLockReadGuard<'static, ()>),
    Alone(RwLockWriteGuard<'static, ()>),
}

impl Keycloak {
    /// Returns the server, which other tests use at the same time.
    pub(crate) async fn shared() -> Self {
        let server = SHARED.get_or_init(Server::start).await;
        let shared = Self { server, _use: Use::Shared(USE.read().await) };
        // A test that failed may have left it stopped.
        shared.start_again().await;
        shared
    }

    /// Returns the server for a test that stops it.
    pub(crate) async fn alone() -> Self {
        let server = SHARED.get_or_init(Server::start).await;
        Self { server, _use: Use::Alone(USE.write().await) }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.server.address)
    }

    /// Ends the server's process.
    pub(crate) async fn stop(&self) {
        let mut control = self.server.control.lock().await;
        control.input.write_all(b"stop\n").unwrap();
        let mut line = String::new();
        control.output.read_line(&mut line).unwrap();
        assert_eq!(line, "stopped\n");
        control.is_stopped = true;
    }

    /// Starts the server again if it is stopped, with the realms that it had.
    pub(crate) async fn start_again(&self) {
        let mut control = self.server.control.lock().await;
        if mem::take(&mut control.is_stopped) {
            control.input.write_all(b"start\n").unwrap();
            self.server.until_ready().await;
        }
    }
}

impl Server {
    async fn start() -> Self {
        let home = std::env::var("SPARKGATE_KEYCLOAK").expect("SPARKGATE_KEYCLOAK is not set: run `make test`");
        let directory = tempfile::Builder::new().prefix("sparkgate-keycloak-").tempdir().unwrap().keep();
        let address = free_address();
        let mut script = Command::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/clients/provider/keycloak-server"))
            .args([home.as_ref(), directory.as_os_str()])
            .arg(address.port().to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (input, output) = (script.stdin.take().unwrap(), BufReader::new(script.stdout.take().unwrap()));
        let server =
            Self { address, directory, control: Control { _script: script, input, output, is_stopped: false }.into() };
        server.until_ready().await;
        server
    }

    async fn until_ready(&self) {
        let deadline = Instant::now() + READY;
        while !http::get(self.address, "/realms/master/.well-known/openid-configuration")
            .is_ok_and(|reply| reply.status == 200)
        {
            let log = std::fs::read_to_string(self.directory.join("log")).unwrap_or_default();
            assert!(Instant::now() < deadline, "Keycloak doesn't start: {log}");
            sleep(Duration::from_millis(200)).await;
        }
    }
}
