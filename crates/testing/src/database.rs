//! The Postgres server of `DATABASE_URL`, on which each test has its own database.

use std::net::{SocketAddr, ToSocketAddrs};

use sqlx::{Connection, PgConnection, PgPool};
use url::Url;

/// Returns `DATABASE_URL`, a database from which others can be created.
///
/// # Panics
/// It isn't set.
pub fn admin_url() -> String {
    std::env::var("DATABASE_URL").expect("DATABASE_URL is not set: run `make test`")
}

/// Returns the address of the server.
pub fn server() -> SocketAddr {
    let url: Url = admin_url().parse().unwrap();
    let address = (url.host_str().unwrap(), url.port().unwrap_or(5432)).to_socket_addrs();
    address.unwrap().next().unwrap()
}

/// Returns the URL of a test's database.
pub fn url(pool: &PgPool) -> String {
    named(pool.connect_options().get_database().unwrap()).into()
}

/// Returns the URL of a test's database behind a proxy.
pub fn url_at(pool: &PgPool, address: SocketAddr) -> String {
    let mut url: Url = url(pool).parse().unwrap();
    url.set_ip_host(address.ip()).unwrap();
    url.set_port(Some(address.port())).unwrap();
    url.into()
}

/// Creates a database and returns its URL.
pub async fn create(name: &str) -> String {
    let mut server = PgConnection::connect(&admin_url()).await.unwrap();
    let create = sqlx::AssertSqlSafe(format!("CREATE DATABASE \"{name}\""));
    sqlx::query(create).execute(&mut server).await.unwrap();
    named(name).into()
}

fn named(database: &str) -> Url {
    let mut url: Url = admin_url().parse().unwrap();
    url.set_path(database);
    url
}

/// Lets the first two changes fail that fire a trigger on these rows, such as `BEFORE INSERT ON kept_logs`, with this code. The sequence
/// `changes` counts them.
pub async fn refuse_twice(pool: &PgPool, rows: &str, code: &str) {
    let refused = format!(
        "CREATE SEQUENCE changes;
        CREATE FUNCTION refuse_twice() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
            IF nextval('changes') < 3 THEN RAISE EXCEPTION 'refused' USING ERRCODE = '{code}'; END IF;
            RETURN coalesce(NEW, OLD);
        END $$;
        CREATE TRIGGER refused_twice {rows} EXECUTE FUNCTION refuse_twice()"
    );
    sqlx::raw_sql(sqlx::AssertSqlSafe(refused)).execute(pool).await.unwrap();
}
