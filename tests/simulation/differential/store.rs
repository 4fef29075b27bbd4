//! Compares the model store with Postgres.

use std::{
    collections::{HashMap, HashSet},
    time::Duration,
};

use sparkgate::{
    spark::{CreateSubmissionRequest, DriverNames},
    store::{
        self, Cost, DEFAULT_TENANT, Largest, NewConnectSession, NewSubmission, Options, Scope, Scoped, Task, replica,
    },
    submission::{KillCause, Outcome, Placement, State, StateChange, SubmissionId},
};
use sqlx::{PgPool, types::Json};
use uuid::Uuid;

use crate::{
    rng::Rng,
    store::{Claimed, InQueue, LeaseName, Limits, QUEUES, Restart, Session, Store},
};

/// The tenants of the model, by their numbers.
const TENANTS: [&str; 2] = [DEFAULT_TENANT, "other"];
/// The queues of the model.
const QUEUE_NAMES: [&str; QUEUES] = ["night", "day"];
const QUEUE_LEASE: &str = "queues";
const HISTORIES: u64 = 40;
const OPERATIONS: usize = 80;
/// The longest duration of a lease, which is longer than a history takes.
const LEASE: u64 = 29_000;
/// Longer than a history.
const LONG: u64 = 3_600_000;

/// Both stores, and the mapping between them.
struct Both {
    rng: Rng,
    model: Store,
    real: store::Store,
    pool: PgPool,
    ids: Vec<SubmissionId>,
    /// Every claim that was ever returned, with the model's counterpart.
    claims: Vec<(Claimed, store::Claimed)>,
    /// The submissions of the model by their real numbers.
    numbers: HashMap<i64, usize>,
}

#[sqlx::test]
async fn the_model_store_answers_as_postgres_does(pool: PgPool) {
    for seed in 0..HISTORIES {
        sqlx::query(
            "TRUNCATE submissions, submission_events, manifests, leases, watch_positions, queue_backlogs,
             connect_sessions CASCADE",
        )
        .execute(&pool)
        .await
        .unwrap();
        let mut both = Both {
            rng: Rng::new(seed),
            model: Store { now: 1, pause: 10_000, ..Store::default() },
            real: store::Store::new(pool.clone()),
            pool: pool.clone(),
            ids: Vec::new(),
            claims: Vec::new(),
            numbers: HashMap::new(),
        };
        for number in 0..OPERATIONS {
            both.model.now += 1;
            let done = both.operation().await;
            if number % 4 == 3 {
                both.compare(&format!("seed {seed}, operation {number}: {done}")).await;
            }
        }
    }
}

impl Both {
    async fn operation(&mut self) -> String {
        match self.rng.below(24) {
            0 => self.accept().await,
            1 => self.acquire().await,
            2 => self.renew().await,
            3 if self.rng.chance(300) => {
                let holder = self.session();
                self.model.end_leases(holder);
                self.real.end_leases(uuid(holder)).await.unwrap();
                format!("end the leases of {holder}")
            }
            4 if self.rng.chance(150) => self.give_back_unknown().await,
            4 | 5 => self.claim().await,
            6..=8 => self.advance().await,
            9 => self.record().await,
            10 | 11 => self.give_back().await,
            12 => self.keep_attempt().await,
            13 => self.limits_pass().await,
            14 => self.of_tenant().await,
            15 => self.archive().await,
            16 | 17 => self.round().await,
            18 => self.hold().await,
            19 => self.note_waiting().await,
            20 => self.sessions().await,
            _ => self.others().await,
        }
    }

    fn session(&mut self) -> Session {
        self.rng.below(3)
    }

    fn submission(&mut self) -> Option<usize> {
        self.rng.place(self.ids.len())
    }

    /// Returns a duration that lasts until the end of the history, or zero.
    fn duration(&mut self) -> u64 {
        self.rng.pick(&[0, LEASE, LEASE])
    }

    async fn accept(&mut self) -> String {
        let (drawn, tenant) = (self.real.draw().await.unwrap(), self.tenant());
        let id = drawn.id.clone();
        self.numbers.insert(drawn.number, self.ids.len());
        self.ids.push(id.clone());
        let in_queue = self.rng.chance(500).then(|| InQueue {
            queue: self.rng.below(QUEUES as u64) as usize,
            priority: self.rng.pick(&[0, 0, 1]),
            cores: 1 + self.rng.below(4),
        });
        let new = NewSubmission {
            drawn,
            request: CreateSubmissionRequest::default(),
            spark_version: "4.3.0".parse().unwrap(),
            spark_user: String::new(),
            namespace: "spark".to_owned(),
            names: names("d-1"),
            manifest: "{}".to_owned(),
            sealed: None,
            name: String::new(),
            owner: String::new(),
            tenant: TENANTS[tenant].to_owned(),
            principal: "anonymous:anonymous".to_owned(),
            actor: None,
            options: Options::default(),
            bounds: Default::default(),
            queue: in_queue.map(|of| store::InQueue {
                queue: QUEUE_NAMES[of.queue].to_owned(),
                priority: of.priority,
                cost: Cost { pods: 1, millicores: of.cores as i64, ..Cost::default() },
                max_queued: None,
                timeout: None,
            }),
            trace: None,
            fingerprint: Vec::new(),
            origins: Default::default(),
        };
        self.real.accept(new).await.unwrap();
        let idle = self.rng.pick(&[None, Some(0), Some(LONG)]);
        if let Some(idle) = idle {
            let new = NewConnectSession {
                id: &id,
                tenant: TENANTS[tenant],
                principal: "anonymous:anonymous",
                name: id.as_str(),
                is_shared: false,
                idle_timeout: millis(idle),
                most: (u32::MAX, u32::MAX),
            };
            self.real.open_connect_session(&new).await.unwrap();
            // The model's sessions are ready when their drivers run.
            self.real.note_connect_ready(&id).await.unwrap();
            self.model.open_session(self.model.rows.len(), idle);
        }
        // Over at once, or never.
        let limit = [None, None, Some(0), Some(LONG), Some(90_000)];
        let limits = Limits {
            start: self.rng.pick(&limit),
            run: self.rng.pick(&limit),
            infrastructure: self.rng.pick(&[0, 1, 2]),
            application: self.rng.pick(&[0, 1]),
            capacity: self.rng.pick(&[0, 1, 2]),
            quota: self.rng.pick(&[0, 1]),
            memory: self.rng.pick(&[None, Some(0), Some(1)]),
            restart: self.rng.pick(&[Restart::Never, Restart::Never, Restart::OnFailure, Restart::Always]),
        };
        let mut kept = serde_json::Map::new();
        kept.extend(
            limits.memory.map(|most| ("spark.sparkgate.memoryGrowth.retries".to_owned(), most.to_string().into())),
        );
        let restart = match limits.restart {
            Restart::Never => None,
            Restart::OnFailure => Some("onFailure"),
            Restart::Always => Some("always"),
        };
        kept.extend(restart.map(|word| ("spark.sparkgate.restart".to_owned(), word.into())));
        let seconds = |limit: Option<u64>| limit.map(|limit| (limit / 1000) as i32);
        sqlx::query(
            "UPDATE submissions SET start_timeout = $2, run_timeout = $3, max_retries_infrastructure = $4,
                 max_retries_application = $5, max_retries_capacity = $6, max_retries_quota = $7,
                 request = jsonb_set(request, '{sparkProperties}', $8),
                 deadline = CASE WHEN queue IS NULL THEN created_at + make_interval(secs => $2) END WHERE id = $1",
        )
        .bind(id.as_str())
        .bind(seconds(limits.start))
        .bind(seconds(limits.run))
        .bind(limits.infrastructure as i32)
        .bind(limits.application as i32)
        .bind(limits.capacity as i32)
        .bind(limits.quota as i32)
        .bind(Json(kept))
        .execute(&self.pool)
        .await
        .unwrap();
        format!("accept {}, {limits:?}, of tenant {tenant}, idle {idle:?}", self.model.accept(limits, tenant, in_queue))
    }

    async fn acquire(&mut self) -> String {
        let (holder, ttl) = (self.session(), self.duration());
        let name = self.rng.pick(&[
            LeaseName::Replica(holder),
            LeaseName::Replica(holder),
            LeaseName::Watch,
            LeaseName::Queues,
        ]);
        let real = self.real.acquire_lease(&lease(name), uuid(holder), millis(ttl)).await.unwrap();
        let model = self.model.acquire_lease(name, holder, ttl);
        let done = format!("acquire {name:?} for {holder}, {ttl} ms");
        assert_eq!(model, real, "{done}");
        done
    }

    async fn renew(&mut self) -> String {
        let (holder, ttl) = (self.session(), self.duration());
        let all = [LeaseName::Replica(holder), LeaseName::Watch, LeaseName::Deadlines];
        let names: Vec<_> = all.into_iter().filter(|_| self.rng.chance(700)).collect();
        let real: Vec<_> = names.iter().copied().map(lease).collect();
        let real = self.real.renew_leases(uuid(holder), &real, millis(ttl)).await.unwrap().names;
        let model: HashSet<_> = self.model.renew_leases(holder, &names, ttl).into_iter().map(lease).collect();
        let done = format!("renew {names:?} for {holder}, {ttl} ms");
        assert_eq!(model, real, "{done}");
        done
    }

    async fn give_back_unknown(&mut self) -> String {
        let session = self.session();
        let busy: Vec<usize> = (0..self.ids.len()).filter(|_| self.rng.chance(500)).collect();
        let ids: Vec<_> = busy.iter().map(|number| self.ids[*number].clone()).collect();
        self.real.give_back_unknown(uuid(session), &ids).await.unwrap();
        self.model.give_back_unknown(session, &busy);
        format!("give back what {session} doesn't know of, busy with {busy:?}")
    }

    async fn claim(&mut self) -> String {
        let (session, limit) = (self.session(), 1 + self.rng.below(3) as usize);
        let busy: Vec<usize> = (0..self.ids.len()).filter(|_| self.rng.chance(300)).collect();
        let ids: Vec<_> = busy.iter().map(|number| self.ids[*number].clone()).collect();
        let real = self.real.claim(uuid(session), limit as i64, &[], &ids).await.unwrap();
        let model = self.model.claim(session, limit, &busy, [usize::MAX; TENANTS.len()]);
        let done = format!("claim {limit} for {session}, busy with {busy:?}");
        let in_words: Vec<_> = real
            .iter()
            .map(|claimed| Claimed {
                submission: self.ids.iter().position(|id| *id == claimed.id).unwrap(),
                attempt: claimed.attempt,
                named: if claimed.manifest.is_some() { claimed.attempt } else { claimed.attempt - 1 },
                kill: (claimed.task == Task::Kill).then(|| claimed.kill.clone()),
                pod_uid: claimed.pod_uid.clone(),
                epoch: claimed.epoch,
                failed_tries: claimed.failed_tries,
                // A claim doesn't read it: an attachment finds it in the attempts before.
                grown: self
                    .model
                    .row(self.ids.iter().position(|id| *id == claimed.id).unwrap())
                    .map_or(0, |row| row.retried_memory),
            })
            .collect();
        assert_eq!(model, in_words, "{done}");
        self.claims.extend(model.into_iter().zip(real));
        done
    }

    /// Returns no claim, the last one, or one that was lost.
    fn some_claim(&mut self, submission: usize) -> Option<i64> {
        let last = self.model.row(submission).map_or(0, |row| row.claim_epoch);
        self.rng.pick(&[None, Some(last), Some(last - 1)])
    }

    async fn advance(&mut self) -> String {
        let Some(submission) = self.submission() else { return String::new() };
        let attempt = self.some_attempt(submission);
        let claim = self.some_claim(submission);
        let ends = [State::Finished, State::Failed, State::Killed, State::Error, State::Lost];
        let progress = match self.rng.below(4) {
            0 => StateChange::Launched,
            1 => StateChange::Running,
            2 if self.rng.chance(500) => {
                StateChange::Ended(Outcome::killed(&KillCause::StartTimeout("not running in time".to_owned())))
            }
            _ => StateChange::Ended(Outcome {
                exit_code: self.rng.pick(&[None, Some(0), Some(3)]),
                ..Outcome::new(self.rng.pick(&ends), self.rng.pick(&["reason", "Evicted", "OOMKilled"]), "words")
            }),
        };
        let pod_uid = self.rng.pick(&[None, Some("a"), Some("b")]).map(str::to_owned);
        let placement = Placement { pod_uid, ..Placement::default() };
        let id = &self.ids[submission];
        let real = self.real.advance(id, attempt, claim, &progress, &placement).await.unwrap();
        let model = self.model.advance(submission, attempt, claim, &progress, &placement);
        let done = format!("advance {submission}, attempt {attempt}, under {claim:?}, to {progress}, {placement:?}");
        assert_eq!(model, real, "{done}");
        done
    }

    async fn note_waiting(&mut self) -> String {
        let Some(submission) = self.submission() else { return String::new() };
        let attempt = self.some_attempt(submission);
        let reason = self.rng.pick(&["Unschedulable", "QuotaExceeded", "ImagePullBackOff"]);
        self.real.note_waiting(&self.ids[submission], attempt, reason, "it waits").await.unwrap();
        self.model.note_waiting(submission, attempt, reason, "it waits");
        format!("{submission}, attempt {attempt}, waits: {reason}")
    }

    /// Returns an attempt, mostly the current one.
    fn some_attempt(&mut self, submission: usize) -> i32 {
        let present = self.model.row(submission).map_or(1, |row| row.attempt);
        present + self.rng.pick(&[0, 0, 0, 0, 0, 0, 0, -1, 1])
    }

    async fn record(&mut self) -> String {
        let Some(submission) = self.submission() else { return String::new() };
        let claim = self.some_claim(submission).unwrap_or_default();
        let (attempt, uid) = (self.some_attempt(submission), self.rng.pick(&["a", "b"]));
        let real = self.real.record_pod(&self.ids[submission], attempt, claim, uid).await.unwrap();
        let model = self.model.record_pod(submission, attempt, claim, uid);
        let done = format!("record {uid} for {submission}, attempt {attempt}, under {claim}");
        assert_eq!(model, real, "{done}");
        done
    }

    async fn give_back(&mut self) -> String {
        let Some(place) = self.rng.place(self.claims.len()) else { return String::new() };
        let (delay, failed, release) = (self.duration(), self.rng.chance(500), self.rng.chance(400));
        let (model, real) = &self.claims[place];
        let Claimed { submission, epoch, .. } = *model;
        let kill = model.kill.is_some();
        if release {
            self.real.release(real).await.unwrap();
            self.model.release(submission, epoch);
            return format!("release {submission} under {epoch}");
        }
        self.real.retry_later(real, millis(delay), failed.then_some((None, "why"))).await.unwrap();
        self.model.retry_later(submission, epoch, kill, delay, failed.then_some("why"));
        format!("retry {submission} under {epoch} in {delay} ms, failed: {failed}")
    }

    async fn keep_attempt(&mut self) -> String {
        let Some(place) = self.rng.place(self.claims.len()) else { return String::new() };
        let (model, real) = &self.claims[place];
        let Claimed { submission, attempt, epoch, .. } = *model;
        let kept = self.real.keep_attempt(real, &names(&format!("d-{attempt}")), "{}", None).await.unwrap();
        let done = format!("keep attempt {attempt} of {submission} under {epoch}");
        assert_eq!(self.model.keep_attempt(submission, attempt, epoch), kept, "{done}");
        done
    }

    /// Lets the pause before a retry, or a time limit, pass.
    async fn limits_pass(&mut self) -> String {
        let Some(submission) = self.submission() else { return String::new() };
        if self.rng.chance(600) {
            let real = self.real.kill_overdue(100, None).await.unwrap();
            let model = self.model.kill_overdue(100);
            assert_eq!(model.len() as u64, real.killed, "kill {model:?}");
            return format!("kill the overdue: {model:?}");
        }
        let over = sqlx::query("UPDATE submissions SET not_before = NULL WHERE id = $1 AND state = 'QUEUED'");
        over.bind(self.ids[submission].as_str()).execute(&self.pool).await.unwrap();
        if let Some(row) = self.model.rows[submission].as_mut().filter(|row| row.state == State::Queued) {
            row.not_before = None;
        }
        format!("the pause of {submission} is over")
    }

    /// Lets a client use a session, or looks for idle ones.
    async fn sessions(&mut self) -> String {
        let Some(submission) = self.submission() else { return String::new() };
        if self.rng.chance(500) {
            self.real.note_connect_use(&self.ids[submission]).await.unwrap();
            self.model.note_use(submission);
            return format!("use {submission}");
        }
        let mut real = self.real.idle_connect_sessions(None).await.unwrap();
        real.sort_unstable_by_key(|id| id.as_str().to_owned());
        let model: Vec<_> = self.model.idle_sessions(true).into_iter().map(|number| self.ids[number].clone()).collect();
        assert_eq!(real, model, "idle sessions");
        format!("idle sessions: {model:?}")
    }

    async fn others(&mut self) -> String {
        let version = self.rng.below(9);
        match (self.rng.below(3), self.submission()) {
            (0, _) => {
                let holder = self.session();
                let lease = (&*lease(LeaseName::Watch), uuid(holder));
                let real = self.real.keep_watch_position("*", &version.to_string(), lease).await.unwrap();
                let kept = format!("{holder} keeps position {version}");
                assert_eq!(self.model.keep_position(holder, version), real, "{kept}");
                kept
            }
            (_, None) => String::new(),
            (_, Some(submission)) => {
                let tenant = self.tenant();
                let (scope, scoped) = self.scoped(tenant);
                let real = scoped.request_kill(&self.ids[submission], &scope, None).await.unwrap();
                let live = self.model.request_kill(submission, tenant);
                assert_eq!(live, real.live && real.allowed, "tenant {tenant} kills {submission}");
                format!("tenant {tenant} kills {submission}")
            }
        }
    }

    /// Reads the queues, and admits some of what waits, for this round or for an older one.
    async fn round(&mut self) -> String {
        let (session, most) = (self.session(), 1 + self.rng.below(4));
        let numbers = self.numbers.clone().into_iter();
        let aside: Vec<_> = numbers.filter(|_| self.rng.chance(100)).collect();
        let largest = QUEUE_NAMES.map(|queue| Largest {
            queue: queue.to_owned(),
            millicores: Some(most as i64),
            ..Largest::default()
        });
        let real = self
            .real
            .queue_round(2, &largest, &aside.clone().into_iter().map(|(real, _)| real).collect::<Vec<_>>())
            .await
            .unwrap();
        let model =
            self.model.queue_round(2, [Some(most); QUEUES], &aside.into_iter().map(|(_, at)| at).collect::<Vec<_>>());
        for (queue, places) in model.places.iter().enumerate() {
            for (tenant, place) in places.iter().enumerate() {
                let is_it =
                    |real: &&store::Place| (&*real.queue, &*real.tenant) == (QUEUE_NAMES[queue], TENANTS[tenant]);
                let real = real.places.iter().find(is_it);
                let waiting = real.map(|real| {
                    let each = real.waiting.iter().map(|head| (self.numbers[&head.number], head.attempt));
                    (real.submissions as u64, real.millicores as u64, each.collect(), real.has_more)
                });
                let each = place.waiting.iter().map(|head| (head.submission, head.attempt)).collect::<Vec<_>>();
                let model = (place.submissions, place.cores, each, place.has_more);
                assert_eq!(model, waiting.unwrap_or_default(), "queue {queue} of tenant {tenant}, at most {most}");
            }
        }
        let is_old = self.rng.chance(200);
        let heads = real.places.iter().flat_map(|place| &place.waiting);
        let picks: Vec<_> = heads.map(|head| (head.number, head.attempt)).filter(|_| self.rng.chance(600)).collect();
        let in_model: Vec<_> = picks.iter().map(|(number, attempt)| (self.numbers[number], *attempt)).collect();
        let versions = (real.version - i64::from(is_old), model.version.wrapping_sub(u64::from(is_old)));
        let real = self.real.admit((uuid(session), QUEUE_LEASE), versions.0, &picks).await.unwrap();
        let real = real.map(|all| {
            let mut all: Vec<_> = all.iter().map(|one| self.numbers[&one.number]).collect();
            all.sort_unstable();
            all
        });
        let mut model = self.model.admit(session, versions.1, &in_model, |_| false);
        model.iter_mut().for_each(|all| all.sort_unstable());
        let done = format!("admit {in_model:?} for {session}, for an older round: {is_old}");
        assert_eq!(model, real, "{done}");
        done
    }

    /// Lets a caller hold or release a submission.
    async fn hold(&mut self) -> String {
        let Some(submission) = self.submission() else { return String::new() };
        let (tenant, holds) = (self.tenant(), self.rng.chance(500));
        let ((scope, scoped), id) = (self.scoped(tenant), &self.ids[submission]);
        let (real, model) = if holds {
            let real = scoped.hold(id, &scope, ("ann", None), None).await.unwrap();
            (real, self.model.hold(submission, tenant))
        } else {
            (scoped.release_held(id, &scope, None).await.unwrap(), self.model.release_held(submission, tenant))
        };
        let done = format!("tenant {tenant} holds {submission}: {holds}");
        assert_eq!(model, real.changed, "{done}");
        done
    }

    fn tenant(&mut self) -> usize {
        self.rng.below(TENANTS.len() as u64) as usize
    }

    /// Returns what the callers of a tenant may see and kill.
    fn scoped(&self, tenant: usize) -> (Scope, Scoped) {
        let scope = Scope::of(vec![TENANTS[tenant].to_owned()], Vec::new(), "");
        (scope.clone(), self.real.scoped(&scope))
    }

    /// Lets a caller kill or clear all submissions of its tenant.
    async fn of_tenant(&mut self) -> String {
        let tenant = self.tenant();
        let (_, scoped) = self.scoped(tenant);
        if self.rng.chance(300) {
            let real = scoped.request_kill_of_all(None).await.unwrap();
            let model = self.model.request_kill_of_all(tenant);
            assert_eq!(model.len() as u64, real, "tenant {tenant} kills {model:?}");
            return format!("tenant {tenant} kills {model:?}");
        }
        let real = scoped.clear_ended(None).await.unwrap();
        assert_eq!(self.model.clear_ended(tenant) as u64, real, "tenant {tenant} clears");
        format!("tenant {tenant} clears {real}")
    }

    /// Archives the log of a pod, if it is that of an ended attempt.
    async fn archive(&mut self) -> String {
        let Some(submission) = self.submission() else { return String::new() };
        let (attempt, uid) = (self.some_attempt(submission), self.rng.pick(&["a", "b"]));
        let id = &self.ids[submission];
        let done = format!("archive the log of pod {uid} for attempt {attempt} of {submission}");
        let real = self.real.log_to_keep(id, attempt, uid).await.unwrap();
        let model = attempt > 0 && self.model.log_to_keep(submission, attempt, uid);
        assert_eq!(model, real.is_some(), "{done}");
        if model {
            self.real.keep_log(id, attempt, None, &[]).await.unwrap();
            self.model.keep_log(submission, attempt);
        }
        done
    }

    async fn compare_attempts(&self, number: usize, done: &str) {
        let row = self.model.row(number).unwrap();
        let real = self.real.all().attempts(&self.ids[number]).await.unwrap();
        let past: Vec<_> = real.iter().map(|it| (it.attempt, it.state, it.exit_code, it.pod_uid.clone())).collect();
        let mut model: Vec<_> = (1..)
            .zip(&row.past)
            .map(|(attempt, past)| (attempt, past.outcome.state, past.outcome.exit_code, past.pod_uid.clone()))
            .collect();
        let exit_code = row.outcome.as_ref().and_then(|outcome| outcome.exit_code);
        model.push((row.attempt, row.state, exit_code, row.pod_uid.clone()));
        assert_eq!(model, past, "{done}: attempts of {number}");
        let pods: Vec<_> = real.iter().map(|it| it.pod.clone()).filter(|pod| !pod.is_empty()).collect();
        let named = row.past.iter().map(|past| past.named).chain([row.named == row.attempt]);
        let model: Vec<_> = (1..).zip(named).filter(|(_, named)| *named).map(|(at, _)| format!("d-{at}")).collect();
        assert_eq!(model, pods, "{done}: names of {number}");
    }

    /// Compares everything that can be read.
    async fn compare(&self, done: &str) {
        for (number, id) in self.ids.iter().enumerate() {
            let real = self.real.all().find(id).await.unwrap();
            let row = self.model.row(number).unwrap();
            let outcome = real.as_ref().filter(|record| record.state.is_terminal()).map(|record| Outcome {
                state: record.state,
                exit_code: record.exit_code,
                reason: record.reason.clone(),
                message: record.message.clone().unwrap_or_default(),
            });
            assert_eq!(row.outcome, outcome, "{done}: outcome of {number}");
            let mut read = self.real.row(id).await.unwrap();
            if let Some(real) = &mut read {
                // The model has one namespace, and finds pods by their attempt.
                (real.namespace, real.pod) = (String::new(), None);
            }
            if let Some(ended) = read.as_mut().filter(|row| row.state != State::Killing) {
                // The cause matters only while the submission is being killed.
                ended.kill = row.kill.clone().unwrap_or_default();
            }
            assert_eq!(self.model.read(number), read, "{done}: row {number}");
            let waiting = real.filter(|record| !record.state.is_terminal() && record.state != State::Killing);
            if let Some(record) = waiting {
                let model = (row.reason.as_ref(), row.message.as_ref());
                assert_eq!(model, (record.reason.as_ref(), record.message.as_ref()), "{done}: {number} waits");
            }
            let events: Vec<(i32, String)> =
                sqlx::query_as("SELECT attempt, state FROM submission_events WHERE submission_id = $1 ORDER BY id")
                    .bind(id.as_str())
                    .fetch_all(&self.pool)
                    .await
                    .unwrap();
            let model: Vec<_> = row.events.iter().map(|(attempt, state)| (*attempt, state.to_string())).collect();
            assert_eq!(model, events, "{done}: events of {number}");
            let cleared = sqlx::query_scalar("SELECT cleared_at IS NOT NULL FROM submissions WHERE id = $1");
            let cleared: bool = cleared.bind(id.as_str()).fetch_one(&self.pool).await.unwrap();
            assert_eq!(row.cleared, cleared, "{done}: {number} is cleared");
            self.compare_attempts(number, done).await;
        }
        let number = |id: &SubmissionId| self.ids.iter().position(|other| other == id).unwrap();
        let live = self
            .real
            .live()
            .await
            .unwrap()
            .into_iter()
            .map(|live| (number(&live.id), (live.state, live.attempt, live.pod_uid.clone())));
        let model: Vec<_> =
            self.model.live().into_iter().map(|(at, row)| (at, (row.state, row.attempt, row.pod_uid))).collect();
        assert_eq!(model, live.collect::<Vec<_>>(), "{done}");
        let model = backlogs(&self.model);
        let real = self.real.queue_backlogs().await.unwrap();
        let at = |queue, tenant| {
            let is_it = |real: &&store::Backlog| (&*real.queue, &*real.tenant) == (queue, tenant);
            real.iter().find(is_it).map_or((0, 0), |real| (real.waiting, real.held))
        };
        assert_eq!(model, QUEUE_NAMES.map(|queue| TENANTS.map(|tenant| at(queue, tenant))), "{done}: backlogs");
        let position = self.real.watch_position("*").await.unwrap();
        assert_eq!(self.model.position.map(|version| version.to_string()), position, "{done}");
    }
}

/// Returns how many wait and how many are held of each tenant in a queue.
fn backlogs(store: &Store) -> [[(i64, i64); TENANTS.len()]; QUEUES] {
    let mut backlogs = [[(0, 0); TENANTS.len()]; QUEUES];
    for row in store.rows.iter().flatten().filter(|row| row.waits()) {
        let Some(place) = row.place else { continue };
        let (waiting, held) = &mut backlogs[place.of.queue][row.tenant];
        *(if row.held { held } else { waiting }) += 1;
    }
    backlogs
}

fn names(pod: &str) -> DriverNames {
    DriverNames {
        app_id: "spark-1".to_owned(),
        resource_prefix: "p".to_owned(),
        driver_pod: pod.to_owned(),
        driver_service: "s".to_owned(),
        config_map: "c".to_owned(),
        local_dir: Uuid::nil(),
    }
}

fn uuid(session: Session) -> Uuid {
    // The least uuids are no sessions: rows that are claimed by nothing have them.
    Uuid::from_u128(u128::from(session) + 0x100)
}

fn lease(name: LeaseName) -> String {
    match name {
        LeaseName::Replica(session) => replica(uuid(session)),
        LeaseName::Watch => "watch/*".to_owned(),
        LeaseName::Deadlines => "deadlines".to_owned(),
        LeaseName::Queues => QUEUE_LEASE.to_owned(),
        LeaseName::Sessions => "connect".to_owned(),
    }
}

fn millis(time: u64) -> Duration {
    Duration::from_millis(time)
}
