//! The model store and Postgres.

use std::time::Duration;

use sparkgate::{
    spark::{CreateSubmissionRequest, DriverNames},
    store::{self, NewSubmission, Options, Task, replica},
    submission::{Outcome, Placement, Progress, State, SubmissionId, engine::Row},
};
use sqlx::PgPool;
use uuid::Uuid;

use crate::{
    rng::Rng,
    store::{Claimed, LeaseName, Session, Store},
};

const HISTORIES: u64 = 40;
const OPERATIONS: usize = 80;
/// Long enough to last for the history.
const LONG: u64 = 3_600_000;

/// Both stores, and what leads from one to the other.
struct Both {
    rng: Rng,
    model: Store,
    real: store::Store,
    pool: PgPool,
    ids: Vec<SubmissionId>,
    /// Every claim that was ever answered, with the model's word for it.
    claims: Vec<(Claimed, store::Claimed)>,
}

#[sqlx::test]
async fn the_model_store_answers_as_postgres_does(pool: PgPool) {
    for seed in 0..HISTORIES {
        sqlx::query("TRUNCATE submissions, leases, watch_positions CASCADE").execute(&pool).await.unwrap();
        let mut both = Both {
            rng: Rng::new(seed),
            model: Store { now: 1, ..Store::default() },
            real: store::Store::new(pool.clone()),
            pool: pool.clone(),
            ids: Vec::new(),
            claims: Vec::new(),
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
        match self.rng.below(13) {
            0 => self.accept().await,
            1 => self.acquire().await,
            2 => self.renew().await,
            3 if self.rng.chance(300) => {
                let holder = self.session();
                self.model.end_leases(holder);
                self.real.end_leases(uuid(holder)).await.unwrap();
                format!("end the leases of {holder}")
            }
            4 | 5 => self.claim().await,
            6..=8 => self.advance().await,
            9 => self.record().await,
            10 | 11 => self.give_back().await,
            _ => self.others().await,
        }
    }

    fn session(&mut self) -> Session {
        self.rng.below(3)
    }

    fn submission(&mut self) -> Option<usize> {
        self.rng.place(self.ids.len())
    }

    /// Until the end of the history, or not at all.
    fn duration(&mut self) -> u64 {
        self.rng.pick(&[0, LONG, LONG])
    }

    async fn accept(&mut self) -> String {
        let drawn = self.real.draw().await.unwrap();
        self.ids.push(drawn.id.clone());
        let names = DriverNames {
            app_id: "spark-1".to_owned(),
            resource_prefix: "p".to_owned(),
            driver_pod: "d".to_owned(),
            driver_service: "s".to_owned(),
            config_map: "c".to_owned(),
            local_dir: Uuid::nil(),
        };
        let new = NewSubmission {
            drawn,
            request: CreateSubmissionRequest::default(),
            spark_version: "4.3.0".parse().unwrap(),
            spark_user: String::new(),
            namespace: "spark".to_owned(),
            names,
            manifest: "{}".to_owned(),
            name: String::new(),
            owner: String::new(),
            options: Options::default(),
            fingerprint: Vec::new(),
        };
        self.real.accept(&new).await.unwrap();
        format!("accept {}", self.model.accept())
    }

    async fn acquire(&mut self) -> String {
        let (holder, ttl) = (self.session(), self.duration());
        let name = self.rng.pick(&[LeaseName::Replica(holder), LeaseName::Replica(holder), LeaseName::Watch]);
        let real = self.real.acquire_lease(&lease(name), uuid(holder), millis(ttl)).await.unwrap();
        let model = self.model.acquire_lease(name, holder, ttl);
        let done = format!("acquire {name:?} for {holder}, {ttl} ms");
        assert_eq!(model, real, "{done}");
        done
    }

    async fn renew(&mut self) -> String {
        let (holder, ttl) = (self.session(), self.duration());
        let mut real = self.real.renew_leases(uuid(holder), millis(ttl)).await.unwrap();
        real.sort();
        let mut model: Vec<_> = self.model.renew_leases(holder, ttl).into_iter().map(lease).collect();
        model.sort();
        let done = format!("renew for {holder}, {ttl} ms");
        assert_eq!(model, real, "{done}");
        done
    }

    async fn claim(&mut self) -> String {
        let (session, limit) = (self.session(), 1 + self.rng.below(3) as usize);
        let busy: Vec<usize> = (0..self.ids.len()).filter(|_| self.rng.chance(300)).collect();
        let ids: Vec<_> = busy.iter().map(|number| self.ids[*number].clone()).collect();
        let real = self.real.claim(uuid(session), limit as i64, &[], &ids).await.unwrap();
        let model = self.model.claim(session, limit, &busy);
        let done = format!("claim {limit} for {session}, busy with {busy:?}");
        let in_words: Vec<_> = real
            .iter()
            .map(|claimed| Claimed {
                submission: self.ids.iter().position(|id| *id == claimed.id).unwrap(),
                attempt: claimed.attempt,
                kill: claimed.task == Task::Kill,
                pod_uid: claimed.pod_uid.clone(),
                epoch: claimed.epoch,
                failed_tries: claimed.failed_tries,
            })
            .collect();
        assert_eq!(model, in_words, "{done}");
        self.claims.extend(model.into_iter().zip(real));
        done
    }

    /// None, the last one, or one that was lost.
    fn some_claim(&mut self, submission: usize) -> Option<i64> {
        let last = self.model.row(submission).map_or(0, |row| row.claim_epoch);
        self.rng.pick(&[None, Some(last), Some(last - 1)])
    }

    async fn advance(&mut self) -> String {
        let Some(submission) = self.submission() else { return String::new() };
        let attempt = if self.rng.chance(100) { 2 } else { 1 };
        let claim = self.some_claim(submission);
        let ends = [State::Finished, State::Failed, State::Killed, State::Error, State::Lost];
        let progress = match self.rng.below(4) {
            0 => Progress::Launched,
            1 => Progress::Running,
            _ => Progress::Ended(Outcome {
                exit_code: self.rng.pick(&[None, Some(0), Some(3)]),
                ..Outcome::new(self.rng.pick(&ends), "reason", "words")
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

    async fn record(&mut self) -> String {
        let Some(submission) = self.submission() else { return String::new() };
        let claim = self.some_claim(submission).unwrap_or_default();
        let (attempt, uid) = (self.rng.pick(&[1, 1, 1, 2]), self.rng.pick(&["a", "b"]));
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
        let Claimed { submission, epoch, kill, .. } = *model;
        if release {
            self.real.release(real).await.unwrap();
            self.model.release(submission, epoch);
            return format!("release {submission} under {epoch}");
        }
        self.real.retry_later(real, millis(delay), failed.then_some("why")).await.unwrap();
        self.model.retry_later(submission, epoch, kill, delay, failed);
        format!("retry {submission} under {epoch} in {delay} ms, failed: {failed}")
    }

    async fn others(&mut self) -> String {
        let version = self.rng.below(9);
        match (self.rng.below(3), self.submission()) {
            (0, _) => {
                self.model.position = Some(version);
                self.real.keep_watch_position("*", &version.to_string()).await.unwrap();
                format!("keep position {version}")
            }
            (_, None) => String::new(),
            (_, Some(submission)) => {
                let real = self.real.request_kill(&self.ids[submission]).await.unwrap();
                assert_eq!(self.model.request_kill(submission), real, "kill {submission}");
                format!("kill {submission}")
            }
        }
    }

    /// Everything that can be read.
    async fn compare(&self, done: &str) {
        for (number, id) in self.ids.iter().enumerate() {
            let real = self.real.find(id).await.unwrap();
            let row = self.model.row(number).unwrap();
            let outcome = real.as_ref().filter(|record| record.state.is_terminal()).map(|record| Outcome {
                state: record.state,
                exit_code: record.exit_code,
                reason: record.reason.clone(),
                message: record.message.clone().unwrap_or_default(),
            });
            assert_eq!(row.outcome, outcome, "{done}: outcome of {number}");
            assert_eq!(
                self.model.read(number),
                real.map(|it| Row { state: it.state, attempt: it.attempt, pod_uid: it.pod_uid }),
                "{done}: row {number}"
            );
            let events: Vec<String> =
                sqlx::query_scalar("SELECT state FROM submission_events WHERE submission_id = $1 ORDER BY id")
                    .bind(id.as_str())
                    .fetch_all(&self.pool)
                    .await
                    .unwrap();
            let model: Vec<_> = row.events.iter().map(|state| state.as_str()).collect();
            assert_eq!(model, events, "{done}: events of {number}");
        }
        let number = |id: &SubmissionId| self.ids.iter().position(|other| other == id).unwrap();
        let live = self.real.live().await.unwrap().into_iter().map(|live| {
            (number(&live.id), Row { state: live.state, attempt: live.attempt, pod_uid: live.pod_uid.clone() })
        });
        assert_eq!(self.model.live(), live.collect::<Vec<_>>(), "{done}");
        let position = self.real.watch_position("*").await.unwrap();
        assert_eq!(self.model.position.map(|version| version.to_string()), position, "{done}");
    }
}

fn uuid(session: Session) -> Uuid {
    Uuid::from_u128(session.into())
}

fn lease(name: LeaseName) -> String {
    match name {
        LeaseName::Replica(session) => replica(uuid(session)),
        LeaseName::Watch => "watch/*".to_owned(),
    }
}

fn millis(time: u64) -> Duration {
    Duration::from_millis(time)
}
