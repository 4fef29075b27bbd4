//! Injects one fault after the other, until the clients are done.

use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicUsize, Ordering::SeqCst},
    time::Duration,
};

use sparkgate_testing::dice::Dice;
use sparkgate_testing::fault_proxy::{Fault, Way};
use sqlx::{AssertSqlSafe, Connection, PgConnection, PgPool};
use tokio::time::{sleep, timeout};

use super::world::{Gateway, World};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Harm {
    Cut,
    Refuse,
    Delay,
    Silence,
    LostReplies,
    BackendsEnded,
    StatementsCancelled,
    TableLocked,
    RowsLocked,
    StatementTimeout,
    ReadOnly,
    DiskFull,
    DiskFullAtCommit,
    EndedAtCommit,
    SlowCommit,
    SequenceBehind,
    NoSynchronousStandby,
    GatewayKilled,
    PostgresKilled,
}

const HARMS: &[(u64, Harm)] = &[
    (14, Harm::Cut),
    (6, Harm::Refuse),
    (6, Harm::Delay),
    (6, Harm::Silence),
    (10, Harm::LostReplies),
    (8, Harm::BackendsEnded),
    (6, Harm::StatementsCancelled),
    (5, Harm::TableLocked),
    (5, Harm::RowsLocked),
    (4, Harm::StatementTimeout),
    (4, Harm::ReadOnly),
    (5, Harm::DiskFull),
    (5, Harm::DiskFullAtCommit),
    (6, Harm::EndedAtCommit),
    (4, Harm::SlowCommit),
    (5, Harm::SequenceBehind),
    (2, Harm::NoSynchronousStandby),
    (4, Harm::GatewayKilled),
    (1, Harm::PostgresKilled),
];

/// The table `harm` controls the triggers.
const TRIGGERS: &str = "
    CREATE TABLE harm (kind text NOT NULL);
    CREATE FUNCTION harm() RETURNS trigger LANGUAGE plpgsql AS $$
    DECLARE k text;
    BEGIN
        SELECT kind INTO k FROM harm WHERE random() < 0.5 LIMIT 1;
        IF k = TG_ARGV[0] OR (k LIKE '%-at-commit' AND TG_ARGV[0] = 'commit') THEN
            CASE k
                WHEN 'disk' THEN RAISE EXCEPTION 'no space left on device' USING ERRCODE = '53100';
                WHEN 'disk-at-commit' THEN RAISE EXCEPTION 'no space left on device' USING ERRCODE = '53100';
                WHEN 'end-at-commit' THEN PERFORM pg_terminate_backend(pg_backend_pid());
                ELSE PERFORM pg_sleep(0.2 * random());
            END CASE;
        END IF;
        RETURN NEW;
    END $$;
    CREATE TRIGGER harm BEFORE INSERT ON submission_events FOR EACH ROW EXECUTE FUNCTION harm('disk');
    CREATE CONSTRAINT TRIGGER harm_at_commit AFTER INSERT OR UPDATE ON submissions DEFERRABLE INITIALLY DEFERRED
        FOR EACH ROW EXECUTE FUNCTION harm('commit')";

pub(crate) async fn prepare(pool: &PgPool) {
    sqlx::raw_sql(TRIGGERS).execute(pool).await.unwrap();
}

/// Successful replies between two faults, unless they take too long: where everything is refused, no reply can be
/// wrong.
const BETWEEN: usize = 40;
const PATIENCE: Duration = Duration::from_secs(6);

/// Injects faults until it is dropped. `count` has the number of each.
pub(crate) async fn harm(world: &mut World, seed: u64, successes: &AtomicUsize, count: &mut BTreeMap<Harm, usize>) {
    let mut dice = Dice::new(seed, "faults");
    loop {
        let wanted = successes.load(SeqCst) + usize::try_from(dice.below(2 * BETWEEN as u64)).unwrap();
        let _ = timeout(PATIENCE, async {
            while successes.load(SeqCst) < wanted {
                sleep(Duration::from_millis(10)).await;
            }
        })
        .await;
        let harm = dice.weighed(HARMS);
        one(world, harm, &mut dice).await;
        *count.entry(harm).or_default() += 1;
    }
}

/// Ends all faults.
pub(crate) async fn heal(world: &mut World) {
    world.postgres.ready().await;
    for statement in
        ["ALTER SYSTEM RESET ALL", "SELECT pg_reload_conf()", "ALTER DATABASE answers RESET ALL", "DELETE FROM harm"]
    {
        run(&world.pool, statement).await;
    }
    for gateway in &world.gateways {
        gateway.database.lose_replies(0.0);
        gateway.database.set(Fault::None);
        gateway.database.cut();
    }
}

async fn one(world: &mut World, harm: Harm, dice: &mut Dice) {
    let short = dice.millis(30, 900);
    let gateway: &Gateway = dice.pick(&world.gateways).unwrap();
    let pool = &world.pool;
    match harm {
        Harm::Cut => {
            for _ in 0..=dice.below(6) {
                gateway.database.cut();
                sleep(dice.millis(0, 40)).await;
            }
        }
        Harm::Refuse => {
            gateway.database.set(Fault::Refuse);
            gateway.database.cut();
            sleep(short).await;
            gateway.database.set(Fault::None);
        }
        Harm::Delay => {
            gateway.database.set(Fault::Delay(dice.millis(5, 150)));
            sleep(short).await;
            gateway.database.set(Fault::None);
        }
        Harm::Silence => {
            let way = *dice.pick(&[Way::ToServer, Way::ToClient, Way::Both]).unwrap();
            gateway.database.set(Fault::Silent(way));
            // Occasionally longer than the timeout of a statement.
            sleep(if dice.one_in(12) { Duration::from_secs(11) } else { short }).await;
            gateway.database.set(Fault::None);
            gateway.database.cut();
        }
        Harm::LostReplies => {
            gateway.database.lose_replies(0.3);
            sleep(short).await;
            gateway.database.lose_replies(0.0);
        }
        Harm::BackendsEnded | Harm::StatementsCancelled => {
            let what = if harm == Harm::BackendsEnded { "pg_terminate_backend" } else { "pg_cancel_backend" };
            for _ in 0..=dice.below(8) {
                let which = "FROM pg_stat_activity WHERE application_name = 'sparkgate' AND random() < 0.5";
                run(pool, &format!("SELECT {what}(pid) {which}")).await;
                sleep(dice.millis(0, 60)).await;
            }
        }
        Harm::TableLocked => {
            let tables = ["submissions", "submission_events", "manifests", "executors", "leases"];
            let (table, time) = (dice.pick(&tables).unwrap(), short.as_secs_f64() * 3.0);
            run(
                pool,
                &format!("BEGIN; SET LOCAL lock_timeout = '3s'; LOCK TABLE {table}; SELECT pg_sleep({time}); ROLLBACK"),
            )
            .await;
        }
        Harm::RowsLocked => {
            let time = short.as_secs_f64() * 3.0;
            let rows = "SELECT FROM submissions ORDER BY number DESC LIMIT 50 FOR UPDATE";
            run(pool, &format!("BEGIN; SET LOCAL lock_timeout = '3s'; {rows}; SELECT pg_sleep({time}); ROLLBACK"))
                .await;
        }
        Harm::StatementTimeout => {
            setting(pool, "statement_timeout", "'3ms'", short).await;
        }
        Harm::ReadOnly => setting(pool, "default_transaction_read_only", "on", short).await,
        Harm::DiskFull => trigger(pool, "disk", short).await,
        Harm::DiskFullAtCommit => trigger(pool, "disk-at-commit", short).await,
        Harm::EndedAtCommit => trigger(pool, "end-at-commit", short).await,
        Harm::SlowCommit => trigger(pool, "slow-at-commit", short).await,
        Harm::SequenceBehind => {
            let back = dice.below(60);
            let behind = "SELECT setval('submission_number', greatest(0, coalesce(max(number), 0) - ";
            run(pool, &format!("{behind}{back})) FROM submissions")).await;
            let behind = "SELECT setval(pg_get_serial_sequence('submission_events', 'id'), greatest(1, max(id) - ";
            run(pool, &format!("{behind}{back})) FROM submission_events HAVING max(id) > 0")).await;
        }
        Harm::NoSynchronousStandby => {
            let time = if dice.one_in(4) { Duration::from_secs(11) } else { short * 2 };
            setting(pool, "synchronous_standby_names", "'nowhere'", time).await;
        }
        Harm::GatewayKilled => {
            gateway.kill();
            sleep(dice.millis(0, 300)).await;
            gateway.start();
        }
        Harm::PostgresKilled => {
            world.postgres.kill();
            sleep(short).await;
            world.postgres.ready().await;
        }
    }
    // A gateway that ended by itself is started again, as by a Deployment.
    for gateway in &world.gateways {
        gateway.start();
    }
}

async fn setting(pool: &PgPool, name: &str, value: &str, time: Duration) {
    run(pool, &format!("ALTER SYSTEM SET {name} = {value}")).await;
    run(pool, "SELECT pg_reload_conf()").await;
    sleep(time).await;
    run(pool, &format!("ALTER SYSTEM RESET {name}")).await;
    run(pool, "SELECT pg_reload_conf()").await;
}

async fn trigger(pool: &PgPool, kind: &str, time: Duration) {
    run(pool, &format!("INSERT INTO harm VALUES ('{kind}')")).await;
    sleep(time).await;
    run(pool, "DELETE FROM harm").await;
}

/// Runs statements on a connection of their own, because a failed statement may leave a transaction open. A failure is
/// caused by another fault, and is retried, because the statements may end a fault.
async fn run(pool: &PgPool, statements: &str) {
    for _ in 0..5 {
        if let Ok(mut connection) = PgConnection::connect_with(&pool.connect_options()).await {
            let done = sqlx::raw_sql(AssertSqlSafe(statements.to_owned())).execute(&mut connection).await.is_ok();
            let _ = connection.close().await;
            if done {
                return;
            }
        }
        sleep(Duration::from_millis(100)).await;
    }
}
