//! Checks of the database.

use std::time::Duration;

use chrono::TimeDelta;

use super::finding::{Finding, clocks};
use sparkgate_common::error::error_chain;
use sparkgate_core::encryption::EncryptionKeys;
use sparkgate_store::{ConnectError, DatabaseSettings, Inspection, Migrations, OldSnapshot, Server, Store};

/// The oldest release of Postgres that is tested.
const OLDEST: i32 = 14;
/// How long pending migrations may take. A server that cancels them earlier can't be migrated.
const MIGRATIONS: Duration = Duration::from_secs(15 * 60);
/// Clocks that differ by this much delay time limits and clean-up.
const FAR: TimeDelta = TimeDelta::seconds(60);
/// A transaction that is open for this long, or since so many others, slows the gateway down: its busiest rows have a new version with
/// each event.
const OLD_SECONDS: i64 = 3600;
const OLD_AGE: i64 = 1_000_000;

/// Checks the database. Returns a store that reads it, if it can be used.
pub async fn check_database(settings: &DatabaseSettings, findings: &mut Vec<Finding>) -> Option<Store> {
    let inspection = match Store::inspect(settings).await {
        Ok(inspection) => inspection,
        Err(error) => {
            findings.push(unusable(&error));
            return None;
        }
    };
    let Inspection { store, server, migrations, missing_grants } = inspection;
    findings.push(version(&server));
    let is_migrated = migrated(&migrations, findings);
    findings.push(grants(&server, &missing_grants));
    findings.push(audit(&server));
    findings.extend(durability(&server));
    findings.push(replication(&server));
    findings.push(encryption(settings, &server));
    findings.push(connections(settings, &server));
    findings.push(timeouts(&server));
    findings.push(snapshots(&server));
    findings.push(clocks("database.clock", "the database", server.now, server.here, FAR));
    (is_migrated && missing_grants.is_empty()).then_some(store)
}

/// Checks that there are keys for all rows that are encrypted.
pub async fn check_encryption(store: &Store, keys: &EncryptionKeys) -> Finding {
    const CHECK: &str = "database.encryption-keys";
    match store.encryption_keys_in_use().await {
        Err(error) => not_read(CHECK, &error_chain(&error)),
        Ok(used) => {
            let known = keys.ids();
            let missing: Vec<_> = used.iter().filter(|id| !known.contains(id)).cloned().collect();
            if missing.is_empty() {
                return Finding::ok(
                    CHECK,
                    format!("there are keys for all encrypted rows ({} keys in use)", used.len()),
                );
            }
            let missing = missing.join(", ");
            Finding::failure(
                CHECK,
                format!("submissions are encrypted with keys that are not in the key file: {missing}"),
                "add these keys to the file of --encryption-key-file: their submissions can't be launched without them",
            )
        }
    }
}

pub(super) fn not_read(check: &'static str, reason: &str) -> Finding {
    Finding::failure(check, format!("the database can't be read: {reason}"), "see the checks of the database")
}

fn unusable(error: &ConnectError) -> Finding {
    let remedy = match error {
        ConnectError::Url(_) => "correct the URL (--database-url)",
        ConnectError::Standby { .. } => "let the URL (--database-url) point to the primary",
        ConnectError::MixedSessions { .. } => "set the pooler to session mode, or let the URL point to Postgres itself",
        ConnectError::Unreachable { .. } => {
            "start Postgres, and check host, port, user and password of the URL (--database-url)"
        }
        ConnectError::Inspect { .. } | ConnectError::Migrate { .. } => {
            "grant the role the rights of docs/operate/reliability.md (\"Privileges\")"
        }
    };
    let check = match error {
        ConnectError::MixedSessions { .. } => "database.pooler",
        ConnectError::Standby { .. } => "database.primary",
        _ => "database.reachable",
    };
    Finding::failure(check, error_chain(error), remedy)
}

fn version(server: &Server) -> Finding {
    let Server { version, version_number, user, .. } = server;
    let text = format!("Postgres {version} answers, as the role {user}");
    if version_number / 10_000 >= OLDEST {
        return Finding::ok("database.reachable", text);
    }
    Finding::failure("database.reachable", text, format!("upgrade Postgres to {OLDEST} or later"))
}

/// Returns whether the tables are those of this release.
fn migrated(migrations: &Migrations, findings: &mut Vec<Finding>) -> bool {
    const CHECK: &str = "database.migrations";
    let Migrations { newest, missing, newer, changed, interrupted } = migrations;
    let list = |versions: &[i64]| versions.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    if let Some(version) = interrupted {
        findings.push(Finding::failure(
            CHECK,
            format!("migration {version} was interrupted, and its effects are unknown"),
            "restore the backup from before the upgrade, or repair the table by hand and delete the row of this version \
             from _sqlx_migrations",
        ));
        return false;
    }
    if !changed.is_empty() {
        findings.push(Finding::failure(
            CHECK,
            format!("migrations of the database are not those of this release: {}", list(changed)),
            "use the program with which the database was migrated, or a later release",
        ));
        return false;
    }
    if !missing.is_empty() {
        let text = format!("migrations are missing: {}", list(missing));
        let remedy = "run `sparkgate migrate` as the owner of the tables, or let `serve` do it at its start";
        findings.push(Finding::failure(CHECK, text, remedy));
        return false;
    }
    let newest = newest.unwrap_or_default();
    findings.push(if newer.is_empty() {
        Finding::ok(CHECK, format!("the database has all migrations, the newest is {newest}"))
    } else {
        let text = format!("the database was migrated by a later release: {}", list(newer));
        Finding::warning(CHECK, text, "finish the upgrade: only the release before it works beside a later one")
    });
    true
}

fn grants(server: &Server, missing: &[String]) -> Finding {
    const CHECK: &str = "database.rights";
    if missing.is_empty() {
        return Finding::ok(CHECK, format!("the role {} may read and write all tables", server.user));
    }
    let text = format!("the role {} lacks rights: {}", server.user, missing.join(", "));
    Finding::failure(CHECK, text, "grant them as the owner of the tables (docs/operate/reliability.md, \"Privileges\")")
}

/// The owner of a table may change it whatever it was granted.
fn audit(server: &Server) -> Finding {
    const CHECK: &str = "database.audit";
    if !server.owns_audit {
        return Finding::ok(CHECK, format!("the role {} may only add entries to the audit", server.user));
    }
    let text = format!(
        "the role {} owns the audit: a client with its password may change and delete entries, as the gateway never does",
        server.user
    );
    Finding::warning(
        CHECK,
        text,
        "let another role own the tables, and migrate (docs/operate/reliability.md, \"Privileges\")",
    )
}

/// Without these settings, Postgres may forget what it has confirmed.
fn durability(server: &Server) -> Vec<Finding> {
    let lost = "submissions that were accepted are lost when the server crashes";
    let each = [
        ("database.fsync", server.fsync, "fsync", format!("fsync is off: {lost}, and its files may be damaged")),
        (
            "database.full-page-writes",
            server.full_page_writes,
            "full_page_writes",
            "full_page_writes is off: a crash of the machine may damage the database's files".to_owned(),
        ),
        (
            "database.synchronous-commit",
            server.synchronous_commit != "off",
            "synchronous_commit",
            format!("synchronous_commit is off for this role and database: {lost}"),
        ),
    ];
    let finding = |(check, is_safe, name, text): (_, bool, _, String)| match is_safe {
        true if name == "synchronous_commit" => Finding::ok(check, format!("{name} is {}", server.synchronous_commit)),
        true => Finding::ok(check, format!("{name} is on")),
        false => Finding::failure(check, text, format!("set {name} = on (docs/operate/reliability.md)")),
    };
    each.into_iter().map(finding).collect()
}

fn replication(server: &Server) -> Finding {
    const CHECK: &str = "database.replication";
    let Server { synchronous_commit, synchronous_standby_names, .. } = server;
    if synchronous_standby_names.is_empty() {
        let text = "there is no synchronous standby: a failover loses what the standby hasn't received";
        return Finding::ok(CHECK, text);
    }
    if ["local", "off"].contains(&synchronous_commit.as_str()) {
        let text = format!(
            "synchronous_standby_names is {synchronous_standby_names}, but synchronous_commit = {synchronous_commit} doesn't \
             wait for a standby: a failover loses submissions"
        );
        return Finding::warning(CHECK, text, "set synchronous_commit = on for this role and database");
    }
    Finding::ok(CHECK, format!("commits wait for a standby: synchronous_standby_names is {synchronous_standby_names}"))
}

fn encryption(settings: &DatabaseSettings, server: &Server) -> Finding {
    const CHECK: &str = "database.tls";
    match settings.unverified_host() {
        None if server.ssl => {
            Finding::ok(CHECK, "the connection is encrypted, and the server's certificate is verified")
        }
        None => Finding::ok(CHECK, "the connection stays within this machine"),
        Some(host) => {
            let how = if server.ssl { "encrypted, but nothing proves that the server is" } else { "not encrypted, to" };
            let text = format!("the connection is {how} {host}");
            let remedy = "add sslmode=verify-full to the URL (--database-url), and sslrootcert=FILE if the certificate is of \
                          an authority of your own";
            Finding::warning(CHECK, text, remedy)
        }
    }
}

fn connections(settings: &DatabaseSettings, server: &Server) -> Finding {
    const CHECK: &str = "database.connections";
    let Server { max_connections: most, open_connections: open, .. } = server;
    let own = i64::from(settings.max_connections);
    let text = format!(
        "each replica uses up to {own} connections; the server permits {most} to this role, and has {open} of all clients"
    );
    let remedy = "raise max_connections of the server, or lower --database-connections";
    match i64::from(*most) {
        most if most < own => Finding::failure(CHECK, text, remedy),
        // During a rollout there is a replica more.
        most if most < 2 * own => Finding::warning(CHECK, format!("{text}: two replicas don't fit"), remedy),
        _ => Finding::ok(CHECK, text),
    }
}

fn timeouts(server: &Server) -> Finding {
    const CHECK: &str = "database.timeouts";
    let migrations = i64::try_from(MIGRATIONS.as_millis()).unwrap_or(i64::MAX);
    if (1..migrations).contains(&server.transaction_timeout) {
        let text =
            format!("transaction_timeout is {} ms: the server may cancel a migration", server.transaction_timeout);
        return Finding::warning(CHECK, text, "set transaction_timeout = 0 for the role that migrates");
    }
    if (1..60_000).contains(&server.idle_session_timeout) {
        let text = format!(
            "idle_session_timeout is {} ms: the server closes idle connections of the pool",
            server.idle_session_timeout
        );
        return Finding::warning(CHECK, text, "set idle_session_timeout = 0 for the gateway's role");
    }
    let shown = |ms: i64| if ms == 0 { "off".to_owned() } else { format!("{ms} ms") };
    let text = format!(
        "idle_in_transaction_session_timeout is {}, statement_timeout is {} (the gateway sets its own)",
        shown(server.idle_in_transaction_session_timeout),
        shown(server.statement_timeout)
    );
    Finding::ok(CHECK, text)
}

/// Old versions of rows stay as long as an old transaction might read them, and each statement walks past them.
fn snapshots(server: &Server) -> Finding {
    const CHECK: &str = "database.snapshots";
    let is_old = |it: &&OldSnapshot| it.age >= OLD_AGE || it.seconds.is_some_and(|seconds| seconds >= OLD_SECONDS);
    let since = |OldSnapshot { holder, age, seconds }: &OldSnapshot| match seconds {
        Some(seconds) => format!("{holder}, for {} minutes and {age} transactions", seconds / 60),
        None => format!("{holder}, for {age} transactions"),
    };
    let old: Vec<_> = server.snapshots.iter().filter(is_old).map(since).collect();
    if !old.is_empty() {
        let text =
            format!("old transactions keep versions of rows that each statement has to skip: {}", old.join("; "));
        let remedy = "end them: a forgotten session, a dump that takes hours, a prepared transaction, a slot or a standby with \
                      hot_standby_feedback that is behind";
        return Finding::warning(CHECK, text, remedy);
    }
    let unseen =
        if server.sees_all { "" } else { " that this role sees (pg_read_all_stats shows those of other roles)" };
    Finding::ok(CHECK, format!("no transaction{unseen} is old"))
}

#[cfg(test)]
mod tests;
