//! The statement that accepts a group of submissions: their rows, objects and first events, all of them or none.

use std::{
    collections::{BTreeMap, HashSet},
    sync::Arc,
};

use sqlx::{PgConnection, types::Json};

use super::{
    in_queue,
    new_submission::NewSubmission,
    spares::Drawn,
    statement::Statement,
    tenant_bounds::{TenantBounds, signed},
};
use crate::{
    error::{Error, likewise, within},
    group_commit::BatchWriter,
    state_log::LoggedChange,
    store::Store,
};
use sparkgate_metrics::metrics;
use sparkgate_submission::{State, Wire};

pub(super) const ACTION: &str = "accepting a submission";

/// The values that one submission writes to the tables.
#[derive(Debug)]
pub(super) struct Row<'a> {
    new: &'a NewSubmission,
    request: String,
    names: String,
    labels: String,
    origins: String,
}

impl<'a> Row<'a> {
    fn new(new: &'a NewSubmission) -> Result<Self, Error> {
        let json =
            |value: Result<String, serde_json::Error>| value.map_err(|error| Error::row(new.drawn.id.as_str(), error));
        Ok(Self {
            request: json(serde_json::to_string(&*new.request.redacted()))?,
            names: json(serde_json::to_string(&new.names))?,
            labels: json(serde_json::to_string(&new.options.labels))?,
            origins: json(serde_json::to_string(&new.origins))?,
            new,
        })
    }
}

fn rows<'a>(all: &[&'a NewSubmission]) -> Result<Vec<Row<'a>>, Error> {
    all.iter().map(|new| Row::new(new)).collect()
}

/// Accepts one submission alone, on a connection of the caller, to measure the cost of the statement itself.
/// `false` if it conflicts with a unique key of another submission.
///
/// # Errors
/// [`Error`], without [`Error::InDoubt`]: the caller owns the connection.
pub async fn accept_on(connection: &mut PgConnection, new: &NewSubmission) -> Result<bool, Error> {
    let rows = rows(&[new])?;
    let inserted = within(ACTION, statement(&rows, true, false).fetch_all(connection)).await?;
    Ok(!inserted.is_empty())
}

/// Carries out group commits of submissions.
#[derive(Debug)]
pub(super) struct Inserter(pub(super) Store);

impl BatchWriter<Arc<NewSubmission>, Result<bool, Error>> for Inserter {
    async fn write(&self, group: Vec<Arc<NewSubmission>>) -> Vec<Result<bool, Error>> {
        metrics().group_size.with(["accept"]).observe(group.len() as f64);
        self.insert_all(&group).await
    }
}

impl Inserter {
    /// Inserts each submission, unless it conflicts with a unique key of another, and returns for each whether it was inserted.
    /// If the database rejects one of them, or another transaction holds its idempotency key, only that one fails.
    pub(super) async fn insert_all(&self, all: &[Arc<NewSubmission>]) -> Vec<Result<bool, Error>> {
        match self.insert(&all.iter().map(Arc::as_ref).collect::<Vec<_>>()).await {
            Ok(inserted) => all.iter().map(|new| Ok(inserted.contains(new.drawn.id.as_str()))).collect(),
            Err(error) if all.len() > 1 && may_be_of_one(&error) => self.insert_each(all).await,
            Err(error) => {
                let mut each: Vec<_> = all.iter().skip(1).map(|_| Err(likewise(&error))).collect();
                each.push(Err(error));
                each
            }
        }
    }

    /// Inserts each submission alone. After the second that waited for a lock in vain, the rest fails too: more than a key is
    /// locked then.
    async fn insert_each(&self, all: &[Arc<NewSubmission>]) -> Vec<Result<bool, Error>> {
        let mut each: Vec<Result<bool, Error>> = Vec::with_capacity(all.len());
        let mut held_up = 0;
        for new in all {
            let inserted = match each.last() {
                Some(Err(error)) if held_up > 1 => Err(likewise(error)),
                _ => self.insert(&[new]).await.map(|inserted| !inserted.is_empty()),
            };
            held_up += usize::from(inserted.as_ref().is_err_and(Error::is_contention));
            each.push(inserted);
        }
        each
    }

    /// Returns the ids of the inserted submissions.
    async fn insert(&self, all: &[&NewSubmission]) -> Result<HashSet<String>, Error> {
        let rows = rows(all)?;
        // An error before there is a connection leaves no doubt.
        let taken = self.0.to_accept(ACTION).await?;
        let spares = &self.0.groups.accept.spares;
        let with_entries = self.0.audit_log.is_some();
        let inserted = taken.read_all(statement(&rows, spares.are_wanted(), with_entries));
        let inserted = within(ACTION, inserted).await.map_err(Error::after_sending)?;
        spares.keep(inserted.iter().filter_map(|(_, spare, at, _)| Some(Drawn::new((*spare)?, *at))));
        let (ids, entries): (HashSet<_>, Vec<_>) = inserted.into_iter().map(|(id, _, _, entry)| (id, entry)).unzip();
        let state = State::Queued.as_str();
        for new in all.iter().filter(|new| ids.contains(new.drawn.id.as_str())) {
            let (submission, tenant) = (new.drawn.id.as_str(), new.tenant.as_str());
            LoggedChange { submission, tenant, attempt: 1, state, ..LoggedChange::default() }.log();
        }
        let of_accepted = all.iter().filter(|new| ids.contains(new.drawn.id.as_str()));
        of_accepted.filter_map(|new| new.actor.as_ref()).for_each(|actor| actor.note.settle());
        self.0.pass_on_entries(None, Some(Json(entries.into_iter().flatten().map(|entry| entry.0).collect())));
        Ok(ids)
    }
}

/// Returns whether an error of a group may concern only one of its submissions. Nothing of the group is stored then.
fn may_be_of_one(error: &Error) -> bool {
    matches!(error, Error::Statement { .. } | Error::Row { .. }) || error.is_contention()
}

/// The statement, with a join, columns and their values for encrypted objects, the bounds of tenants, and a part of its `WITH` list. All
/// statements insert keys in the same order, so that two groups never wait for each other; tenants are locked before any key.
macro_rules! statement {
    (origins: $origins:expr, deadline: $deadline:expr, join: $join:expr, bytes: $bytes:expr, row: $row:expr, row_values: $row_values:expr, manifest: $manifest:expr, permitted: $permitted:expr, from: $from:literal, audited: $audited:expr, entry: $entry:expr) => {
        concat!(
            r#"
        WITH new AS MATERIALIZED (
            SELECT *, "#,
            $bytes,
            r#" AS bytes
            FROM unnest($1::text[], $2::bigint[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::timestamptz[], $9::text[], $10::text[], $11::text[], $12::text[], $13::boolean[], $14::text[], $15::bytea[], $16::integer[], $17::integer[], $18::integer[], $19::integer[], $20::integer[], $23::text[], $24::text[], $25::text[], $26::text[], $27::text[], $28::integer[], $29::integer[], "#,
            $origins,
            r#"::text[])
            AS new (id, number, request, spark_version, namespace, names, spark_user, created_at, objects, name, owner, labels, unique_name, idempotency_key, fingerprint, start_timeout, run_timeout, kill_grace, max_retries_infrastructure, max_retries_application, tenant, principal, trace_context, client_id, wire, max_retries_capacity, max_retries_quota, origins)"#,
            $join,
            r#"
        )"#,
            $permitted,
            r#", accepted AS (
            INSERT INTO submissions (id, number, state, request, spark_version, namespace, names, spark_user, created_at,
                queued_at, name, owner, labels, unique_name, idempotency_key, fingerprint, start_timeout, run_timeout,
                kill_grace, deadline, max_retries_infrastructure, max_retries_application, tenant, principal, trace_context,
                client_id, wire, max_retries_capacity, max_retries_quota, origins, record_bytes"#,
            $row,
            r#")
            SELECT id, number, $21, request::jsonb, spark_version, namespace, names::jsonb, spark_user, created_at,
                created_at, name, owner, labels::jsonb, unique_name, idempotency_key, fingerprint, start_timeout,
                run_timeout, kill_grace, "#,
            $deadline,
            r#", max_retries_infrastructure,
                max_retries_application, tenant, principal, trace_context, client_id, wire, coalesce(max_retries_capacity, 0),
                coalesce(max_retries_quota, 0), origins::jsonb, bytes"#,
            $row_values,
            r#"
            FROM "#,
            $from,
            r#" ORDER BY owner, idempotency_key, tenant, principal
            ON CONFLICT DO NOTHING
            RETURNING id, attempt, state, created_at, tenant, principal, record_bytes
        ), rendered AS (
            INSERT INTO manifests (submission_id, objects"#,
            $manifest,
            ") SELECT id, objects",
            $manifest,
            r#" FROM new JOIN accepted USING (id)
        ), counted AS (
            INSERT INTO record_bytes SELECT tenant, sum(accepted.record_bytes) FROM accepted GROUP BY tenant
        )"#,
            $audited,
            r#"
        INSERT INTO submission_events (submission_id, attempt, state, at)
        SELECT id, attempt, state, created_at FROM accepted
        RETURNING submission_id, CASE WHEN $22 THEN nextval('submission_number') END, clock_timestamp(), "#,
            $entry
        )
    };
}

/// Selects the submissions that don't exceed the bounds of their tenants.
macro_rules! permitted {
    ($tenants:literal, $queued:literal, $bytes:literal) => {
        concat!(
            r#", bounds AS MATERIALIZED (
            SELECT tenant,
                CASE WHEN queued IS NOT NULL THEN queued - locked_queued(tenant, queued) END AS places,
                CASE WHEN most IS NOT NULL THEN most - locked_record_bytes(tenant) END AS room
            FROM (SELECT * FROM unnest("#,
            $tenants,
            "::text[], ",
            $queued,
            "::bigint[], ",
            $bytes,
            r#"::bigint[]) AS bounds (tenant, queued, most) ORDER BY tenant OFFSET 0) AS sorted
        ), permitted AS MATERIALIZED (
            SELECT placed.* FROM (
                SELECT *, row_number() OVER before AS place, sum(bytes) OVER before AS total
                FROM new WINDOW before AS (PARTITION BY tenant ORDER BY number)
            ) AS placed LEFT JOIN bounds USING (tenant)
            WHERE (place <= places) IS NOT FALSE AND (total <= room) IS NOT FALSE
        )"#
        )
    };
}

/// Writes an entry of the audit for each accepted submission that has an actor.
macro_rules! audited {
    () => {
        r#", audited AS (
            INSERT INTO audit (principal, address, request_id, action, tenant, submission_id, verdict)
            SELECT principal, address, request_id, 'submit', tenant, id, 'allowed'
            FROM accepted JOIN unnest($30::text[], $31::text[], $32::text[]) AS actor (id, address, request_id) USING (id)
            RETURNING *
        )"#
    };
}

/// The entry of the audit of an accepted submission, if it is wanted.
macro_rules! entry {
    ($wanted:literal) => {
        concat!(
            "CASE WHEN ",
            $wanted,
            " THEN (SELECT to_jsonb(audited) FROM audited WHERE audited.submission_id = submission_events.submission_id) END"
        )
    };
}

/// What counts for a record when it is accepted.
macro_rules! bytes {
    ($more:literal) => {
        concat!("(octet_length(request) + octet_length(objects)", $more, ")::bigint")
    };
}

/// When the start timeout is over.
macro_rules! deadline {
    () => {
        "created_at + make_interval(secs => start_timeout)"
    };
}

macro_rules! plain {
    (origins: $origins:literal, permitted: $permitted:expr, from: $from:literal) => {
        statement!(origins: $origins, deadline: deadline!(), join: "", bytes: bytes!(""), row: "", row_values: "", manifest: "", permitted: $permitted, from: $from, audited: "", entry: "NULL::jsonb")
    };
}

macro_rules! audited_one {
    (origins: $origins:literal, permitted: $permitted:expr, from: $from:literal) => {
        statement!(origins: $origins, deadline: deadline!(), join: "", bytes: bytes!(""), row: "", row_values: "", manifest: "", permitted: $permitted, from: $from, audited: audited!(), entry: entry!("$33"))
    };
}

/// Also writes encrypted objects. To an older release a row with them looks claimed (`UNCLAIMED_SEALED`).
macro_rules! sealed_one {
    (origins: $origins:literal, permitted: $permitted:expr, from: $from:literal) => {
        statement!(
            origins: $origins,
            deadline: deadline!(),
            join: " LEFT JOIN unnest($33::text[], $34::text[], $35::bytea[]) AS encrypted (id, sealed_key, sealed) USING (id)",
            bytes: bytes!(" + coalesce(octet_length(sealed), 0)"),
            row: ", sealed, claimed_by",
            row_values: ", sealed IS NOT NULL, CASE WHEN sealed IS NOT NULL THEN '00000000-0000-0000-0000-000000000001'::uuid END",
            manifest: ", sealed_key, sealed",
            permitted: $permitted,
            from: $from,
            audited: audited!(),
            entry: entry!("$36")
        )
    };
}

/// Also writes submissions in queues, which wait for their admission (`UNADMITTED`), if the backlogs of the queues have room for them. The
/// locks of queues follow those of tenants.
const IN_QUEUES: &str = statement!(
    origins: "$37",
    deadline: concat!("CASE WHEN queue IS NULL THEN ", deadline!(), " END"),
    join: " LEFT JOIN unnest($33::text[], $34::text[], $35::bytea[]) AS encrypted (id, sealed_key, sealed) USING (id)
            LEFT JOIN unnest($41::text[], $42::text[], $43::integer[], $44::integer[], $45::integer[], $46::bigint[], $47::bigint[],
                $48::bigint[], $49::bigint[], $50::boolean[], $51::text[])
                AS in_queue (id, queue, priority, queue_timeout, cost_pods, cost_millicores, cost_memory_bytes,
                    cost_driver_millicores, cost_driver_memory_bytes, cost_grows, cost_extended) USING (id)",
    bytes: bytes!(" + coalesce(octet_length(sealed), 0)"),
    row: ", sealed, claimed_by, queue, priority, queue_rank, queue_timeout, queue_deadline, cost_pods, cost_millicores,
                cost_memory_bytes, cost_driver_millicores, cost_driver_memory_bytes, cost_grows, cost_extended",
    row_values: ", sealed IS NOT NULL, CASE WHEN queue IS NOT NULL THEN '00000000-0000-0000-0000-000000000002'::uuid
                    WHEN sealed IS NOT NULL THEN '00000000-0000-0000-0000-000000000001'::uuid END,
                queue, priority, number - priority::bigint * 1000000, queue_timeout,
                created_at + make_interval(secs => queue_timeout), cost_pods, cost_millicores, cost_memory_bytes,
                cost_driver_millicores, cost_driver_memory_bytes, cost_grows, cost_extended::jsonb",
    manifest: ", sealed_key, sealed",
    permitted: ", bounds AS MATERIALIZED (
            SELECT tenant,
                CASE WHEN queued IS NOT NULL THEN queued - locked_queued(tenant, queued) END AS places,
                CASE WHEN most IS NOT NULL THEN most - locked_record_bytes(tenant) END AS room
            FROM (SELECT * FROM unnest($38::text[], $39::bigint[], $40::bigint[]) AS bounds (tenant, queued, most)
                  ORDER BY tenant OFFSET 0) AS sorted
        ), backlogs AS MATERIALIZED (
            SELECT queue, most - locked_backlog(queue, most) AS queue_places
            FROM (SELECT * FROM unnest($52::text[], $53::bigint[]) AS backlogs (queue, most)
                  WHERE (SELECT count(*) FROM bounds) >= 0 ORDER BY queue OFFSET 0) AS sorted
        ), permitted AS MATERIALIZED (
            SELECT placed.* FROM (
                SELECT *, row_number() OVER before AS place, sum(bytes) OVER before AS total,
                    row_number() OVER (PARTITION BY queue ORDER BY number) AS queue_place
                FROM new WINDOW before AS (PARTITION BY tenant ORDER BY number)
            ) AS placed LEFT JOIN bounds USING (tenant) LEFT JOIN backlogs USING (queue)
            WHERE (place <= places) IS NOT FALSE AND (total <= room) IS NOT FALSE AND (queue_place <= queue_places) IS NOT FALSE
        )",
    from: "permitted",
    audited: audited!(),
    entry: entry!("$36")
);

const PLAIN: &str = plain!(origins: "$30", permitted: "", from: "new");
const AUDITED: &str = audited_one!(origins: "$34", permitted: "", from: "new");
const SEALED: &str = sealed_one!(origins: "$37", permitted: "", from: "new");
const PLAIN_BOUNDED: &str = plain!(origins: "$30", permitted: permitted!("$31", "$32", "$33"), from: "permitted");
const AUDITED_BOUNDED: &str =
    audited_one!(origins: "$34", permitted: permitted!("$35", "$36", "$37"), from: "permitted");
const SEALED_BOUNDED: &str = sealed_one!(origins: "$37", permitted: permitted!("$38", "$39", "$40"), from: "permitted");

fn statement<'a>(rows: &'a [Row<'a>], with_spares: bool, with_entries: bool) -> Statement<'a> {
    let actors: Vec<_> =
        rows.iter().filter_map(|row| Some((row.new.drawn.id.as_str(), row.new.actor.as_ref()?))).collect();
    let sealed: Vec<_> =
        rows.iter().filter_map(|row| Some((row.new.drawn.id.as_str(), row.new.sealed.as_ref()?))).collect();
    let bounds: BTreeMap<_, _> = rows
        .iter()
        .filter(|row| !row.new.bounds.is_none())
        .map(|row| (row.new.tenant.as_str(), row.new.bounds))
        .collect();
    let in_queues: Vec<_> =
        rows.iter().filter_map(|row| Some((row.new.drawn.id.as_str(), row.new.queue.as_ref()?))).collect();
    let is_plain = sealed.is_empty() && actors.is_empty() && in_queues.is_empty();
    let is_sealed = !sealed.is_empty() || !in_queues.is_empty();
    let text = match (is_plain, is_sealed, bounds.is_empty()) {
        _ if !in_queues.is_empty() => IN_QUEUES,
        (true, _, true) => PLAIN,
        (true, _, false) => PLAIN_BOUNDED,
        (false, false, true) => AUDITED,
        (false, false, false) => AUDITED_BOUNDED,
        (false, true, true) => SEALED,
        (false, true, false) => SEALED_BOUNDED,
    };
    let origins = column(rows, |row| row.origins.as_str());
    let statement = sqlx::query_as(text)
        .bind(column(rows, |row| row.new.drawn.id.as_str()))
        .bind(column(rows, |row| row.new.drawn.number))
        .bind(column(rows, |row| row.request.as_str()))
        .bind(column(rows, |row| row.new.spark_version.to_string()))
        .bind(column(rows, |row| row.new.namespace.as_str()))
        .bind(column(rows, |row| row.names.as_str()))
        .bind(column(rows, |row| row.new.spark_user.as_str()))
        .bind(column(rows, |row| row.new.drawn.at))
        .bind(column(rows, |row| row.new.manifest.as_str()))
        .bind(column(rows, |row| row.new.name.as_str()))
        .bind(column(rows, |row| row.new.owner.as_str()))
        .bind(column(rows, |row| row.labels.as_str()))
        .bind(column(rows, |row| row.new.options.unique_name))
        .bind(column(rows, |row| row.new.options.idempotency_key.as_deref()))
        .bind(column(rows, |row| row.new.fingerprint.as_slice()))
        .bind(column(rows, |row| row.new.options.start_timeout))
        .bind(column(rows, |row| row.new.options.run_timeout))
        .bind(column(rows, |row| row.new.options.kill_grace))
        .bind(column(rows, |row| row.new.options.max_retries_infrastructure))
        .bind(column(rows, |row| row.new.options.max_retries_application))
        .bind(State::Queued.as_str())
        .bind(with_spares)
        .bind(column(rows, |row| row.new.tenant.as_str()))
        .bind(column(rows, |row| row.new.principal.as_str()))
        .bind(rare(rows, |row| row.new.trace.as_deref()))
        .bind(rare(rows, |row| row.new.options.client_id.as_deref()))
        .bind(rare(rows, |row| row.new.options.wire.map(Wire::as_str)))
        .bind(rare(rows, |row| Some(row.new.options.max_retries_capacity).filter(|most| *most > 0)))
        .bind(rare(rows, |row| Some(row.new.options.max_retries_quota).filter(|most| *most > 0)));
    if is_plain {
        return bound(statement.bind(origins), &bounds);
    }
    let (ids, actors): (Vec<_>, Vec<_>) = actors.into_iter().unzip();
    let statement = statement
        .bind(ids)
        .bind(actors.iter().map(|actor| actor.address.as_deref()).collect::<Vec<_>>())
        .bind(actors.iter().map(|actor| actor.request_id.as_str()).collect::<Vec<_>>());
    if !is_sealed {
        return bound(statement.bind(with_entries).bind(origins), &bounds);
    }
    let (ids, sealed): (Vec<_>, Vec<_>) = sealed.into_iter().unzip();
    let statement = statement
        .bind(ids)
        .bind(sealed.iter().map(|sealed| sealed.key.as_str()).collect::<Vec<_>>())
        .bind(sealed.iter().map(|sealed| sealed.text.as_slice()).collect::<Vec<_>>())
        .bind(with_entries)
        .bind(origins);
    if in_queues.is_empty() {
        return bound(statement, &bounds);
    }
    in_queue::bind(bind_bounds(statement, &bounds), &in_queues)
}

/// Adds the bounds of tenants, if one has any.
fn bound<'a>(statement: Statement<'a>, bounds: &BTreeMap<&'a str, TenantBounds>) -> Statement<'a> {
    if bounds.is_empty() { statement } else { bind_bounds(statement, bounds) }
}

fn bind_bounds<'a>(statement: Statement<'a>, bounds: &BTreeMap<&'a str, TenantBounds>) -> Statement<'a> {
    statement
        .bind(bounds.keys().copied().collect::<Vec<_>>())
        .bind(bounds.values().map(|bounds| bounds.queued.map(signed)).collect::<Vec<_>>())
        .bind(bounds.values().map(|bounds| bounds.record_bytes.map(signed)).collect::<Vec<_>>())
}

/// Returns a column that few submissions have. If none has it, the array is empty: `unnest` fills it up with NULL.
fn rare<'a, T>(rows: &'a [Row<'a>], value: impl Fn(&'a Row<'a>) -> Option<T>) -> Vec<Option<T>> {
    let any = rows.iter().any(|row| value(row).is_some());
    if any { column(rows, value) } else { Vec::new() }
}

fn column<'a, T>(rows: &'a [Row<'a>], value: impl Fn(&'a Row<'a>) -> T) -> Vec<T> {
    rows.iter().map(value).collect()
}
