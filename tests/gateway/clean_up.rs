//! Deletion of old data: pods by the cluster's own rules, rows with all their records.

use std::time::Duration;

use k8s_openapi::api::{
    core::v1::{ConfigMap, Service},
    rbac::v1::{Role, RoleBinding},
};
use kube::{
    Api, Client,
    api::{ListParams, Patch, PatchParams, PostParams},
    config::{KubeConfigOptions, Kubeconfig},
};
use serde_json::json;
use sparkgate::{
    service::{CleanUpSettings, CleanedUp},
    submission::{DriverState, SubmissionId},
};
use sparkgate_testing::kube_apiserver::{ADMIN, KubeApiserver};
use sqlx::{PgPool, postgres::PgPoolOptions};
use tokio_util::sync::CancellationToken;

use crate::world::{World, eventually};

const DAY: Duration = Duration::from_secs(24 * 3600);
const OFF: CleanUpSettings = CleanUpSettings { finished_pod_ttl: None, retention: None };
const POD_TTL: CleanUpSettings = CleanUpSettings { finished_pod_ttl: Some(DAY), ..OFF };
const RETENTION: CleanUpSettings = CleanUpSettings { retention: Some(DAY), ..OFF };

/// Creates a submission whose driver has finished.
async fn finished(world: &mut World) -> SubmissionId {
    world.watch();
    let id = world.submit(&[]).await;
    world.service.launcher.work().await.unwrap();
    world.play_exit(0).await;
    world.until(&id, DriverState::Finished).await;
    // The watch removes it once the end is recorded.
    eventually(|| async {
        let finalizers = world.driver_named(&id).await.metadata.finalizers.unwrap_or_default();
        finalizers.is_empty().then_some(()).ok_or(finalizers)
    })
    .await;
    id
}

/// Moves the timestamps of the rows into the past.
async fn later(pool: &PgPool, time: Duration) {
    sqlx::query(
        "UPDATE submissions SET finished_at = finished_at - make_interval(secs => $1),
             pod_deleted_at = pod_deleted_at - make_interval(secs => $1),
             clean_up_not_before = clean_up_not_before - make_interval(secs => $1)",
    )
    .bind(time.as_secs_f64())
    .execute(pool)
    .await
    .unwrap();
}

async fn clean_up(world: &World, settings: CleanUpSettings) -> (usize, usize, u64) {
    let CleanedUp { pods, put_off, submissions, more } = world.service.leadership.clean_up(&settings).await.unwrap();
    assert!(!more);
    (pods, put_off, submissions)
}

/// The process that recorded the end died before it removed the finalizer, and the watch doesn't report the pod.
#[sqlx::test]
async fn clean_up_deletes_a_pod_that_lost_its_labels_and_has_the_finalizer(pool: PgPool) {
    let world = World::new(pool).await;
    let id = world.submit(&[]).await;
    world.service.launcher.work().await.unwrap();
    world.set(&id, "state = 'FINISHED', finished_at = now()").await;
    let pod = world.driver().await.metadata.name.unwrap();
    let without = json!({"metadata": {"labels": {"sparkgate.dev/instance": null}}});
    world.pods().patch(&pod, &PatchParams::default(), &Patch::Merge(without)).await.unwrap();
    later(&world.pool, DAY).await;
    assert_eq!(clean_up(&world, POD_TTL).await, (1, 0, 0));
    assert!(world.pods().get_opt(&pod).await.unwrap().is_none());
}

#[sqlx::test]
async fn clean_up_deletes_a_finished_pod_with_its_objects_and_keeps_the_row(pool: PgPool) {
    let mut world = World::new(pool).await;
    let id = finished(&mut world).await;
    assert_eq!(clean_up(&world, POD_TTL).await, (0, 0, 0), "not before its time");
    assert_eq!(world.driver_count().await, 1);

    later(&world.pool, DAY).await;
    assert_eq!(clean_up(&world, POD_TTL).await, (1, 0, 0));
    eventually(|| async {
        let none = ListParams::default().labels("spark-app-selector");
        let services = world.api::<Service>().list(&none).await.unwrap().items.len();
        let maps = world.api::<ConfigMap>().list(&ListParams::default()).await.unwrap();
        let maps = maps.items.into_iter().filter_map(|map| map.metadata.name).filter(|name| name.starts_with("spark-"));
        match (world.driver_count().await, services, maps.count()) {
            (0, 0, 0) => Ok(()),
            left => Err(left),
        }
    })
    .await;
    assert_eq!(world.status(&id).await.driver_state, DriverState::Finished);
    assert_eq!(clean_up(&world, POD_TTL).await, (0, 0, 0), "once");
}

#[sqlx::test]
async fn an_old_submission_is_deleted_after_its_pod(pool: PgPool) {
    let mut world = World::new(pool).await;
    let id = finished(&mut world).await;
    let live = world.submit(&[]).await;
    later(&world.pool, DAY).await;
    assert_eq!(clean_up(&world, RETENTION).await, (1, 0, 0), "first the pod");
    world.until_no_driver().await;
    later(&world.pool, Duration::from_secs(120)).await;
    assert_eq!(clean_up(&world, RETENTION).await, (0, 0, 1));
    assert_eq!(world.service.submissions.status(&world.service.anonymous(), &id).await.unwrap(), None);
    assert_eq!(world.events(&id).await, Vec::<String>::new());
    assert_eq!(world.status(&live).await.driver_state, DriverState::Submitted);
}

#[sqlx::test]
async fn clean_up_that_is_switched_off_deletes_nothing(pool: PgPool) {
    let mut world = World::new(pool).await;
    let id = finished(&mut world).await;
    later(&world.pool, 10_000 * DAY).await;
    assert_eq!(clean_up(&world, OFF).await, (0, 0, 0));
    assert_eq!((world.driver_count().await, world.events(&id).await.last().unwrap().as_str()), (1, "FINISHED"));
}

#[sqlx::test]
async fn clean_up_is_retried_later_when_the_cluster_is_unavailable(pool: PgPool) {
    let mut good = World::new(pool.clone()).await;
    finished(&mut good).await;
    later(&pool, DAY).await;
    let away = tower::service_fn(|_: http::Request<kube::client::Body>| async {
        let status = r#"{"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 503, "reason": "ServiceUnavailable"}"#;
        http::Response::builder().status(503).body(kube::client::Body::from(status.as_bytes().to_vec()))
    });
    let world = World::on(pool.clone(), Client::new(away, "default"), good.namespace.clone()).await;
    assert!(world.service.leadership.clean_up(&POD_TTL).await.unwrap_err().may_pass());
    assert_eq!(clean_up(&good, POD_TTL).await, (0, 0, 0), "not again at once");
    later(&pool, Duration::from_secs(3600)).await;
    assert_eq!(clean_up(&good, POD_TTL).await, (1, 0, 0));
}

#[sqlx::test]
async fn the_clean_up_worker_runs_until_it_is_stopped(pool: PgPool) {
    let mut world = World::new(pool).await;
    finished(&mut world).await;
    let stop = CancellationToken::new();
    let idle = tokio::spawn(world.service.leadership.clone().run_clean_up(OFF, stop.clone()));
    let at_once = CleanUpSettings { finished_pod_ttl: Some(Duration::ZERO), ..OFF };
    let busy = tokio::spawn(world.service.leadership.clone().run_clean_up(at_once, stop.clone()));
    world.until_no_driver().await;
    assert!(!idle.is_finished() && !busy.is_finished());
    stop.cancel();
    idle.await.unwrap();
    busy.await.unwrap();
}

/// The gateway may delete pods in one namespace and not in the other.
#[sqlx::test]
async fn a_pod_that_may_not_be_deleted_delays_no_other(pool: PgPool) {
    let mut closed = World::new(pool.clone()).await;
    let kept = finished(&mut closed).await;
    later(&pool, DAY).await;
    let mut open = World::new(pool.clone()).await;
    finished(&mut open).await;
    later(&pool, DAY).await;
    let user = format!("cleaner-{}", open.namespace);
    may_delete_pods(&open, &user).await;
    let restricted = World::on(pool.clone(), client_of(&user).await, open.namespace.clone()).await;

    assert_eq!(clean_up(&restricted, POD_TTL).await, (1, 1, 0));
    open.until_no_driver().await;
    assert_eq!(closed.driver_count().await, 1);
    assert_eq!(clean_up(&restricted, RETENTION).await, (0, 0, 0), "the pod is put off, and its row stays");

    may_delete_pods(&closed, &user).await;
    later(&pool, Duration::from_secs(3600)).await;
    assert_eq!(clean_up(&restricted, POD_TTL).await, (1, 0, 0));
    closed.until_no_driver().await;
    assert_eq!(closed.status(&kept).await.driver_state, DriverState::Finished);
}

/// Each statement handles as many rows as it can before its timeout.
#[sqlx::test]
async fn a_statement_that_takes_too_long_is_repeated_with_fewer_rows(pool: PgPool) {
    sqlx::raw_sql(
        "INSERT INTO submissions (id, number, state, request, spark_version, spark_user, owner, namespace, names, created_at,
                                  finished_at, pod_uid, pod_deleted_at, pod_millicores, pod_memory_bytes, pod_since, pod_ended_at)
         SELECT 'driver-20260101000000-' || n, n, 'FAILED', '{}', '4.3.0', 'tester', 'owner-' || n, 'spark',
                jsonb_build_object('driverPod', 'pod-' || n), now() - interval '5 hours',
                now() - interval '3 hours' - n * interval '1 millisecond', 'u' || n,
                now() - interval '2 hours', 1000, 1000, now() - interval '4 hours', now() - interval '3 hours'
         FROM generate_series(1000, 1199) AS n;
         CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS $$
             BEGIN PERFORM pg_sleep(0.02); RETURN coalesce(NEW, OLD); END $$;
         CREATE TRIGGER slow BEFORE INSERT ON usage_by_day FOR EACH ROW EXECUTE FUNCTION slow();
         CREATE TRIGGER slow BEFORE DELETE ON submissions FOR EACH ROW EXECUTE FUNCTION slow();",
    )
    .execute(&pool)
    .await
    .unwrap();
    let options = (*pool.connect_options()).clone().options([("statement_timeout", "1500ms")]);
    let impatient = PgPoolOptions::new().max_connections(5).connect_with(options).await.unwrap();
    let world = World::new(impatient).await;
    let settings = CleanUpSettings { retention: Some(Duration::from_secs(3600)), ..OFF };
    let mut rounds = 0;
    while world.service.leadership.clean_up(&settings).await.unwrap().more {
        rounds += 1;
        assert!(rounds < 100);
    }
    let left: (i64, i64) =
        sqlx::query_as("SELECT (SELECT count(*) FROM submissions), (SELECT count(DISTINCT owner) FROM usage_by_day)")
            .fetch_one(&pool)
            .await
            .unwrap();
    assert_eq!(left, (0, 200));
}

#[sqlx::test]
async fn clean_up_works_in_bounded_rounds_and_counts_pods_that_are_gone(pool: PgPool) {
    let world = World::new(pool).await;
    sqlx::query(
        "INSERT INTO submissions (id, number, state, request, spark_version, spark_user, namespace, names, created_at,
                                  finished_at, pod_uid)
         SELECT 'driver-20260101000000-' || n, n, 'FAILED', '{}', '4.3.0', 'tester', $1,
                jsonb_build_object('driverPod', 'pod-' || n), now(), now() - interval '2 days', 'u' || n
         FROM generate_series(1000, 1249) AS n",
    )
    .bind(&world.namespace)
    .execute(&world.pool)
    .await
    .unwrap();
    for (pods, more) in [(100, true), (100, true), (50, false), (0, false)] {
        let done = world.service.leadership.clean_up(&POD_TTL).await.unwrap();
        assert_eq!(done, CleanedUp { pods, more, ..CleanedUp::default() });
    }
    later(&world.pool, Duration::from_secs(120)).await;
    for (submissions, more) in [(100, true), (100, true), (50, false)] {
        let done = world.service.leadership.clean_up(&RETENTION).await.unwrap();
        assert_eq!(done, CleanedUp { submissions, more, ..CleanedUp::default() });
    }
}

async fn may_delete_pods(world: &World, user: &str) {
    let role = json!({"metadata": {"name": "cleaner"},
        "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["delete"]}]});
    let binding = json!({"metadata": {"name": "cleaner"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "cleaner"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}]});
    let how = PostParams::default();
    world.api::<Role>().create(&how, &serde_json::from_value(role).unwrap()).await.unwrap();
    world.api::<RoleBinding>().create(&how, &serde_json::from_value(binding).unwrap()).await.unwrap();
    // The API server applies a new right a moment later.
    let user = client_of(user).await;
    let pods: Api<k8s_openapi::api::core::v1::Pod> = Api::namespaced(user, &world.namespace);
    eventually(|| async {
        match pods.delete("unknown", &Default::default()).await {
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
            other => Err(other.map(drop)),
        }
    })
    .await;
}

async fn client_of(user: &str) -> Client {
    let mut kubeconfig = Kubeconfig::read_from(KubeApiserver::start().await.file(ADMIN)).unwrap();
    kubeconfig.auth_infos[0].auth_info.as_mut().unwrap().impersonate = Some(user.to_owned());
    let config = kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
    Client::try_from(config).unwrap()
}
