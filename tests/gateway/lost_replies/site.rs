//! What lives share: the servers, and a migrated database of which each life gets a copy.

use std::net::SocketAddr;

use sparkgate::store::{DatabaseSettings, Store};
use sparkgate_testing::{database, kube_apiserver::KubeApiserver};
use sqlx::{AssertSqlSafe, PgPool};
use tokio::sync::Mutex;

pub(crate) struct Site {
    /// `postgres://user:password`
    login: String,
    pub(crate) postgres: SocketAddr,
    admin: PgPool,
    template: String,
    /// Postgres makes one copy at a time.
    copying: Mutex<()>,
    pub(crate) kubernetes: &'static KubeApiserver,
}

impl Site {
    pub(crate) async fn open() -> Self {
        let (url, postgres) = (database::admin_url(), database::server());
        let (login, _) = url.rsplit_once('@').unwrap();
        let admin = PgPool::connect(&url).await.unwrap();
        let template = name();
        let kubernetes = KubeApiserver::start().await;
        let site = Self { login: login.to_owned(), postgres, admin, template, copying: Mutex::default(), kubernetes };
        site.execute(format!("CREATE DATABASE {}", site.template)).await;
        let url = site.url(postgres, &site.template);
        Store::connect(&DatabaseSettings { url, max_connections: 6 }).await.unwrap().close().await;
        site
    }

    pub(crate) fn url(&self, address: SocketAddr, database: &str) -> String {
        format!("{}@{address}/{database}", self.login)
    }

    /// Creates a database; returns its name.
    pub(crate) async fn database(&self) -> String {
        let _one = self.copying.lock().await;
        let name = name();
        self.execute(format!("CREATE DATABASE {name} TEMPLATE {}", self.template)).await;
        name
    }

    pub(crate) async fn drop_database(&self, name: &str) {
        self.execute(format!("DROP DATABASE {name} WITH (FORCE)")).await;
    }

    pub(crate) async fn close(self) {
        self.drop_database(&self.template).await;
    }

    async fn execute(&self, statement: String) {
        sqlx::query(AssertSqlSafe(statement)).execute(&self.admin).await.unwrap();
    }
}

fn name() -> String {
    format!("lost_replies_{}", uuid::Uuid::new_v4().simple())
}
