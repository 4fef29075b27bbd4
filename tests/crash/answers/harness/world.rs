//! Postgres, two gateways with their own proxies, and a connection to the database that no fault affects.

use std::{net::SocketAddr, path::PathBuf, process::Command, str::FromStr, sync::Mutex, time::Duration};

use sparkgate_testing::fault_proxy::{Fault, FaultProxy};
use sparkgate_testing::{
    guard::guard,
    postgres::Postgres,
    process::{Process, free_port, until},
};
use sqlx::{
    PgPool,
    postgres::{PgConnectOptions, PgPoolOptions},
};

use super::{
    apiserver::Apiserver,
    clients::bare,
    http::{Got, HangUp, send},
};

pub(crate) struct Gateway {
    pub(crate) address: SocketAddr,
    pub(crate) database: FaultProxy,
    program: PathBuf,
    arguments: Vec<String>,
    url: String,
    log: PathBuf,
    process: Mutex<Option<Process>>,
}

pub(crate) struct World {
    pub(crate) gateways: Vec<Gateway>,
    pub(crate) postgres: Postgres,
    pub(crate) pool: PgPool,
    _apiserver: Apiserver,
}

const DATABASE: &str = "answers";

impl World {
    /// Starts everything.
    pub(crate) async fn new(program: PathBuf, seed: u64) -> Self {
        let mut postgres = Postgres::new("answers-postgres");
        postgres.ready().await;
        drop(postgres.create_database(DATABASE).await);
        let options = PgConnectOptions::from_str(&postgres.url(DATABASE, postgres.port).unwrap()).unwrap();
        // The harness's own writes wait for no standby, and succeed in read-only mode.
        let settings =
            [("synchronous_commit", "off"), ("default_transaction_read_only", "off"), ("statement_timeout", "0")];
        let pool = PgPoolOptions::new().max_connections(6).acquire_timeout(Duration::from_secs(20));
        let pool = pool.connect_lazy_with(options.options(settings));
        postgres.migrate(&program, DATABASE, &pool).await;
        let apiserver = Apiserver::start().await;
        let kubeconfig = guard().directory().join("kubeconfig");
        std::fs::write(&kubeconfig, apiserver.kubeconfig()).unwrap();
        let mut gateways = Vec::new();
        for number in 0..2 {
            let upstream = SocketAddr::from(([127, 0, 0, 1], postgres.port));
            let database = FaultProxy::seeded(upstream, seed ^ number).await;
            let address = SocketAddr::from(([127, 0, 0, 1], free_port()));
            let (listen, kubeconfig) = (address.to_string(), kubeconfig.display().to_string());
            let connect = format!("--connect-listen=127.0.0.1:{}", free_port());
            let most = ["--connect-sessions-per-principal=1000000", "--connect-sessions-per-tenant=1000000"];
            let arguments = ["serve", "--listen", &listen, "--kubeconfig", &kubeconfig, &connect, most[0], most[1]];
            gateways.push(Gateway {
                address,
                program: program.clone(),
                arguments: arguments.iter().map(|&argument| argument.to_owned()).collect(),
                url: postgres.gateway_url(DATABASE, database.address().port()).unwrap(),
                database,
                log: guard().directory().join(format!("gateway-{number}.log")),
                process: Mutex::default(),
            });
        }
        let world = Self { gateways, postgres, pool, _apiserver: apiserver };
        for gateway in &world.gateways {
            gateway.start();
        }
        // A gateway that starts refuses everything, and a run would soon be over.
        for gateway in &world.gateways {
            let list = bare("GET", "/v1/submissions".to_owned());
            until("a gateway answers", Duration::from_secs(90), async || {
                matches!(send(gateway.address, &list, HangUp::Never).await, Got::Reply(reply) if reply.status == 200)
            })
            .await;
        }
        world
    }

    /// Ends the gateways, and waits until the database has ended their statements.
    pub(crate) async fn end(&mut self) {
        for gateway in &self.gateways {
            gateway.kill();
            gateway.database.set(Fault::None);
            gateway.database.cut();
        }
        self.postgres.ready().await;
        until("the gateways' statements have ended", Duration::from_secs(90), async || {
            let left = sqlx::query_scalar("SELECT count(*) FROM pg_stat_activity WHERE application_name = 'sparkgate'");
            left.fetch_one(&self.pool).await.is_ok_and(|left: i64| left == 0)
        })
        .await;
    }
}

impl Gateway {
    pub(crate) fn start(&self) {
        let mut process = self.process.lock().unwrap();
        if process.as_mut().is_some_and(|process| process.ended().is_none()) {
            return;
        }
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).env("SPARKGATE_DATABASE_URL", &self.url).env_remove("KUBECONFIG");
        command.env("SPARKGATE_LOG", "warn").env("RUST_LOG", "warn");
        *process = Some(Process::spawn(&mut command, &self.log));
    }

    /// Sends SIGKILL.
    pub(crate) fn kill(&self) {
        *self.process.lock().unwrap() = None;
    }
}
