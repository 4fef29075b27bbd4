//! The servers that a run kills and restarts: one set per process, used by one run at a time.

mod kubernetes;

use std::sync::LazyLock;

pub(crate) use sparkgate_testing::postgres::Postgres;
use tokio::sync::{Mutex, MutexGuard};

pub(crate) use kubernetes::{Kubernetes, NODE, grant, revoke};

pub(crate) struct Servers {
    pub(crate) postgres: Postgres,
    pub(crate) kubernetes: Kubernetes,
}

static SERVERS: LazyLock<Mutex<Option<Servers>>> = LazyLock::new(Mutex::default);

/// Exclusive access to the servers until it is dropped. All of them are running.
pub(crate) struct Borrowed(MutexGuard<'static, Option<Servers>>);

pub(crate) async fn borrow() -> Borrowed {
    let mut servers = SERVERS.lock().await;
    let all =
        servers.get_or_insert_with(|| Servers { postgres: Postgres::new("postgres"), kubernetes: Kubernetes::new() });
    all.postgres.start();
    all.kubernetes.start();
    all.postgres.ready().await;
    all.kubernetes.ready().await;
    Borrowed(servers)
}

impl Borrowed {
    pub(crate) fn both(&mut self) -> &mut Servers {
        self.0.as_mut().unwrap()
    }
}
