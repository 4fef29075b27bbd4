//! A proxy in front of the API server that answers with pages of its own: an ingress that is reloaded, a load balancer without a
//! server, a sign-in page. Their codes are also Kubernetes' codes of refusals and of absence.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
};

use http::{Method, Request, Response};
use kube::{Client, ResourceExt, client::Body};
use sparkgate::submission::{DriverState, SubmissionId};
use sqlx::PgPool;

use crate::world::{World, eventually};

/// A proxy that passes requests on, or answers them itself.
#[derive(Clone, Default)]
struct Proxy {
    is_reloaded: Arc<AtomicBool>,
    /// Requests of each method that it answered itself: to patch, to delete, others.
    answered: Arc<[AtomicUsize; 3]>,
}

impl Proxy {
    fn before(&self, real: &Client, code: u16, page: &'static str) -> Client {
        let (real, proxy) = (real.clone(), self.clone());
        let service = tower::service_fn(move |request: Request<Body>| {
            let (real, proxy) = (real.clone(), proxy.clone());
            async move {
                if !proxy.is_reloaded.load(SeqCst) {
                    return real.send(request).await;
                }
                proxy.count(request.method()).fetch_add(1, SeqCst);
                let answer = Response::builder().status(code).header("content-type", "text/html");
                Ok(answer.body(Body::from(page.as_bytes().to_vec())).unwrap())
            }
        });
        Client::new(service, "default")
    }

    fn count(&self, method: &Method) -> &AtomicUsize {
        match *method {
            Method::PATCH => &self.answered[0],
            Method::DELETE => &self.answered[1],
            _ => &self.answered[2],
        }
    }
}

async fn due_at_once(pool: &PgPool) {
    sqlx::query("UPDATE submissions SET not_before = NULL").execute(pool).await.unwrap();
}

async fn is_held(world: &World, id: &SubmissionId) -> bool {
    !world.driver_named(id).await.finalizers().is_empty()
}

#[sqlx::test]
async fn pages_of_a_proxy_end_nothing_and_all_goes_on_afterwards(pool: PgPool) {
    for (code, page) in [
        (404, "404 page not found"),
        (403, "<html><head><title>Sign in</title></head><body>403</body></html>"),
        (400, "Bad Request"),
        (410, "gone"),
        (422, ""),
        (200, "<html><body>Sign in</body></html>"),
        (200, "{}"),
    ] {
        let good = World::new(pool.clone()).await;
        let proxy = Proxy::default();
        let client = proxy.before(&good.client, code, page);
        let mut world = World::on(pool.clone(), client, good.namespace.clone()).await;
        world.watch();
        let mut started = Vec::new();
        for _ in 0..4 {
            started.push(world.submit(&[]).await);
        }
        eventually(|| async {
            world.service.launcher.work().await.unwrap();
            let pending = pending(&world, &started).await;
            (pending == started.len()).then_some(()).ok_or(pending)
        })
        .await;
        let running = serde_json::json!({"running": {"startedAt": "2026-01-01T00:00:00Z"}});
        for id in &started {
            world.play_on(world.driver_named(id).await, "Running", running.clone()).await;
            world.until(id, DriverState::Running).await;
        }
        let [runs, ends, killed, gone] = &started[..] else { unreachable!() };
        let queued = [world.submit(&[]).await, world.submit(&[]).await, world.submit(&[]).await];

        proxy.is_reloaded.store(true, SeqCst);
        assert!(world.service.submissions.kill(&world.service.anonymous(), killed).await.unwrap());
        // Its row forgets that it got so far: a launch that looks for its recorded pod.
        world.set(gone, "state = 'LAUNCHING'").await;
        for _ in 0..4 {
            due_at_once(&world.pool).await;
            world.service.launcher.work().await.unwrap();
            tokio::time::sleep(std::time::Duration::from_millis(300)).await;
        }
        world.play_end_of(ends).await;
        // The watch is still open, or it begins with a list that is answered with a page.
        world.look_away();
        world.watch();
        for id in started.iter().chain(&queued) {
            let states = world.events(id).await;
            let is_live = ["QUEUED", "LAUNCHING", "PENDING", "RUNNING", "KILLING"].contains(&states.last().unwrap().as_str());
            assert!(is_live || id == ends, "{code} {page}: {states:?}, {:?}", world.status(id).await);
        }
        assert!(is_held(&world, ends).await && is_held(&world, killed).await);

        proxy.is_reloaded.store(false, SeqCst);
        eventually(|| async {
            due_at_once(&world.pool).await;
            world.service.launcher.work().await.unwrap();
            let pending = pending(&world, &queued).await;
            (pending == queued.len()).then_some(()).ok_or(pending)
        })
        .await;
        world.until(ends, DriverState::Finished).await;
        eventually(|| async { (!is_held(&world, ends).await).then_some(()).ok_or("it is held") }).await;
        world.until(killed, DriverState::Killed).await;
        assert_eq!(world.status(runs).await.driver_state, DriverState::Running);
        assert!(!world.events(gone).await.iter().any(|state| state == "LOST" || state == "ERROR"));
    }
}

/// The end is recorded, and the write that follows it is answered with a page.
#[sqlx::test]
async fn a_finalizer_that_a_page_answers_for_is_removed_soon_after(pool: PgPool) {
    let good = World::new(pool.clone()).await;
    let proxy = Proxy::default();
    let client = proxy.before(&good.client, 404, "404 page not found");
    let mut world = World::on(pool.clone(), client, good.namespace.clone()).await;
    let id = world.submit_running().await;
    proxy.is_reloaded.store(true, SeqCst);
    world.play_exit(0).await;
    world.until(&id, DriverState::Finished).await;
    eventually(|| async { (proxy.count(&Method::PATCH).load(SeqCst) > 0).then_some(()).ok_or("not tried") }).await;
    assert!(is_held(&world, &id).await);
    proxy.is_reloaded.store(false, SeqCst);
    eventually(|| async { (!is_held(&world, &id).await).then_some(()).ok_or("it is held") }).await;
}

/// The clean-up forgets a pod that it has deleted.
#[sqlx::test]
async fn a_pod_whose_deletion_a_page_answers_is_deleted_later(pool: PgPool) {
    let good = World::new(pool.clone()).await;
    let proxy = Proxy::default();
    let client = proxy.before(&good.client, 404, "404 page not found");
    let mut world = World::on(pool.clone(), client, good.namespace.clone()).await;
    let id = world.submit_running().await;
    world.play_exit(0).await;
    world.until(&id, DriverState::Finished).await;
    eventually(|| async { (!is_held(&world, &id).await).then_some(()).ok_or("it is held") }).await;
    proxy.is_reloaded.store(true, SeqCst);
    let at_once = sparkgate::service::CleanUpSettings { finished_pod_ttl: Some(std::time::Duration::ZERO), retention: None };
    let _ = world.service.leadership.clean_up(&at_once).await;
    assert_eq!(world.driver_count().await, 1);
    assert!(proxy.count(&Method::DELETE).load(SeqCst) > 0);
    proxy.is_reloaded.store(false, SeqCst);
    eventually(|| async {
        sqlx::query("UPDATE submissions SET clean_up_not_before = NULL").execute(&pool).await.unwrap();
        world.service.leadership.clean_up(&at_once).await.unwrap();
        (world.driver_count().await == 0).then_some(()).ok_or("it is there")
    })
    .await;
}

async fn pending(world: &World, ids: &[SubmissionId]) -> usize {
    let mut pending = 0;
    for id in ids {
        pending += usize::from(world.events(id).await.last().unwrap() == "PENDING");
    }
    pending
}
