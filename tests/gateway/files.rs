//! Uploaded files: their references become signed URLs when the driver is launched.

use std::{path::Path, time::Duration};

use axum::{
    Router,
    body::{Body, to_bytes},
    http::{Request, StatusCode},
};
use bytes::Bytes;
use futures::stream;
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::api::ListParams;
use sha2::{Digest, Sha256};
use sparkgate::{
    api::{HttpSettings, router},
    files::FileStore,
    service::{FileSettings, Pace, Service},
    spark::parse_properties,
    submission::{DriverState, SubmissionId},
};
use sqlx::PgPool;
use tower::ServiceExt;

use crate::world::{World, eventually};

const BASE: &str = "http://gateway.example:6066/spark";

/// Gives a gateway a store of files, and returns its routes.
async fn keep_files(world: &mut World, dir: &Path) -> Router {
    keep_files_at(world, dir.to_str().unwrap(), None).await
}

/// Does the same for a store at a URL, which drivers may read themselves.
async fn keep_files_at(world: &mut World, url: &str, driver_url: Option<&str>) -> Router {
    let (unused_ttl, patience) = (Some(Duration::from_secs(3600)), Duration::ZERO);
    let (base_url, driver_url) = (BASE.to_owned(), driver_url.map(str::to_owned));
    let settings = FileSettings {
        base_url,
        driver_url,
        largest: 1 << 20,
        part: 1 << 20,
        unused_ttl,
        patience,
        pace: Pace::SLOWEST,
    };
    world.configure(|setup| setup.files = Some((FileStore::open(url).unwrap(), settings))).await;
    router(world.service.clone(), HttpSettings::default()).unwrap()
}

/// Uploads content and returns its hash.
async fn upload(service: &Service, content: &'static str) -> String {
    let hash: String = Sha256::digest(content).iter().map(|byte| format!("{byte:02x}")).collect();
    let body = stream::iter([Ok::<_, std::io::Error>(Bytes::from_static(content.as_bytes()))]);
    service.files.upload(&service.anonymous(), None, &hash, None, body).await.unwrap();
    hash
}

async fn submit(world: &World, resource: &str, properties: &[(&str, &str)]) -> SubmissionId {
    let mut request = world.request(properties);
    request.app_resource = resource.to_owned();
    world.service.submissions.create(&world.service.anonymous(), request).await.unwrap()
}

async fn fetch(router: &Router, url: &str) -> (StatusCode, String) {
    let path = url.strip_prefix(BASE).unwrap_or_else(|| panic!("{url}"));
    let response = router.clone().oneshot(Request::get(path).body(Body::empty()).unwrap()).await.unwrap();
    let status = response.status();
    let body = to_bytes(response.into_body(), 1 << 20).await.unwrap();
    (status, String::from_utf8(body.to_vec()).unwrap())
}

#[sqlx::test]
async fn a_driver_gets_urls_that_are_valid_until_its_submission_ends(pool: PgPool) {
    let mut world = World::new(pool).await;
    let dir = tempfile::tempdir().unwrap();
    let router = keep_files(&mut world, dir.path()).await;
    world.watch();
    let (job, conf) = (upload(&world.service, "print(1)").await, upload(&world.service, "a: b").await);
    let references = format!("sparkgate-file:/{conf}/conf.yaml#renamed,local:///etc/hosts");
    let retried = [("spark.files", references.as_str()), ("spark.sparkgate.maxRetries.application", "1")];
    let id = submit(&world, &format!("sparkgate-file:/{job}/my%20job.py"), &retried).await;
    let shown = world.service.submissions.manifest(&world.service.anonymous(), &id, 1).await.unwrap().unwrap();
    assert!(serde_json::to_string(&shown).unwrap().contains(&references.replace(':', "\\\\:").replace('#', "\\\\#")));

    for attempt in 1..=2 {
        eventually(async || {
            let due = sqlx::query("UPDATE submissions SET not_before = NULL WHERE state = 'QUEUED' AND attempt = $1");
            let due = due.bind(attempt).execute(&world.pool).await.unwrap();
            if due.rows_affected() == 1 { Ok(()) } else { Err("not queued") }
        })
        .await;
        assert_eq!(world.service.launcher.work().await.unwrap(), 1);
        let pod = world.driver_of(attempt).await;
        let args = pod.spec.as_ref().unwrap().containers[0].args.clone().unwrap();
        let url = args.iter().find(|arg| arg.starts_with("http")).unwrap();
        assert!(url.ends_with("/my%20job.py"), "{args:?}");
        assert_eq!(fetch(&router, url).await, (StatusCode::OK, "print(1)".to_owned()));

        let maps = world.api::<ConfigMap>().list(&ListParams::default()).await.unwrap().items;
        let maps = maps.into_iter().filter(|map| {
            map.metadata.owner_references.as_ref().unwrap()[0].uid == *pod.metadata.uid.as_ref().unwrap()
        });
        let properties = maps.filter_map(|map| map.data?.get("spark.properties").cloned()).next().unwrap();
        let files = parse_properties(&properties)["spark.files"].clone();
        let (url, rest) = files.split_once(',').unwrap();
        assert_eq!(rest, "local:///etc/hosts");
        let url = url.strip_suffix("#renamed").unwrap();
        assert_eq!(fetch(&router, url).await, (StatusCode::OK, "a: b".to_owned()));
        world.play_on(pod, "Failed", serde_json::json!({"terminated": {"exitCode": 1}})).await;
        if attempt == 2 {
            world.until(&id, DriverState::Failed).await;
            assert_eq!(fetch(&router, url).await.0, StatusCode::GONE);
        }
    }
}

#[sqlx::test]
async fn a_launch_waits_for_a_store_that_is_away(pool: PgPool) {
    let mut world = World::new(pool).await;
    let dir = tempfile::tempdir().unwrap();
    let _ = keep_files(&mut world, dir.path()).await;
    let job = upload(&world.service, "print(1)").await;
    let id = submit(&world, &format!("sparkgate-file:/{job}/job.py"), &[]).await;

    let aside = dir.path().with_extension("aside");
    std::fs::rename(dir.path(), &aside).unwrap();
    std::fs::write(dir.path(), "no directory").unwrap();
    assert_eq!(world.service.launcher.work().await.unwrap(), 1);
    std::fs::remove_file(dir.path()).unwrap();
    std::fs::rename(&aside, dir.path()).unwrap();
    let waits = world.service.submissions.submission(&world.service.anonymous(), &id).await.unwrap().unwrap();
    assert_eq!(waits.reason.as_deref(), Some("FilesUnavailable"), "{waits:?}");
    assert_eq!(world.driver_count().await, 0);

    sqlx::query("UPDATE submissions SET not_before = NULL").execute(&world.pool).await.unwrap();
    assert_eq!(world.service.launcher.work().await.unwrap(), 1);
    assert_eq!(world.driver_count().await, 1);
}

#[sqlx::test]
async fn a_file_that_is_gone_from_its_store_ends_the_submission(pool: PgPool) {
    let mut world = World::new(pool).await;
    let dir = tempfile::tempdir().unwrap();
    let _ = keep_files(&mut world, dir.path()).await;
    let job = upload(&world.service, "print(1)").await;
    let id = submit(&world, &format!("sparkgate-file:/{job}/job.py"), &[]).await;
    std::fs::remove_dir_all(dir.path()).unwrap();
    std::fs::create_dir(dir.path()).unwrap();
    assert_eq!(world.service.launcher.work().await.unwrap(), 1);
    let status = world.until(&id, DriverState::Error).await;
    assert!(status.message.as_deref().unwrap_or_default().contains(&job), "{status:?}");
    assert_eq!(world.driver_count().await, 0);
}

/// The store is a directory, or, to try another kind, that of `SPARKGATE_TEST_FILES_URL`, whose objects are at
/// `SPARKGATE_TEST_FILES_HTTP`.
#[sqlx::test]
async fn a_driver_that_reads_the_store_gets_its_uris(pool: PgPool) {
    let mut world = World::new(pool).await;
    let dir = tempfile::tempdir().unwrap();
    let (url, http) = (std::env::var("SPARKGATE_TEST_FILES_URL"), std::env::var("SPARKGATE_TEST_FILES_HTTP").ok());
    let url = url.unwrap_or_else(|_| dir.path().to_str().unwrap().to_owned());
    let _ = keep_files_at(&mut world, &url, Some("s3a://bucket/prefix")).await;
    world.watch();
    let content = async |uri: &str| {
        let path = uri.strip_prefix("s3a://bucket/prefix/").unwrap_or_else(|| panic!("{uri}"));
        match &http {
            Some(http) => {
                let answer = reqwest::get(format!("{http}/{path}")).await.unwrap();
                answer.status().is_success().then_some(answer.text().await.unwrap())
            }
            // Hadoop takes the name of an object without escapes.
            None => std::fs::read_to_string(dir.path().join(path.replace("%20", " "))).ok(),
        }
    };
    let (job, conf) = (upload(&world.service, "print(1)").await, upload(&world.service, "a: b").await);
    let resource = format!("sparkgate-file:/{job}/my%20job.py");
    let references = format!("sparkgate-file:/{conf}/conf.yaml#renamed,sparkgate-file:/{conf}/other.yaml,s3a://x/y");
    let id = submit(&world, &resource, &[("spark.files", &references)]).await;
    let again = submit(&world, &resource, &[]).await;
    assert_eq!(world.service.launcher.work().await.unwrap(), 2);

    let drivers = ListParams::default().labels("spark-role=driver");
    let pods = world.api::<Pod>().list(&drivers).await.unwrap().items;
    let uris: Vec<String> = pods
        .iter()
        .map(|pod| {
            let args = pod.spec.as_ref().unwrap().containers[0].args.clone().unwrap();
            args.into_iter().find(|arg| arg.starts_with("s3a")).unwrap()
        })
        .collect();
    assert_eq!(uris[0], uris[1], "both have the same copy");
    assert!(uris[0].ends_with("/my%20job.py"), "{uris:?}");
    assert_eq!(content(&uris[0]).await.as_deref(), Some("print(1)"));
    let maps = world.api::<ConfigMap>().list(&ListParams::default()).await.unwrap().items;
    let properties: Vec<_> = maps.into_iter().filter_map(|map| map.data?.get("spark.properties").cloned()).collect();
    let files = properties.iter().find_map(|text| parse_properties(text).get("spark.files").cloned()).unwrap();
    let files: Vec<&str> = files.split(',').collect();
    let [first, second, third] = files.as_slice() else { panic!("{files:?}") };
    assert_eq!(*third, "s3a://x/y");
    let first = first.strip_suffix("#renamed").unwrap();
    assert!(first.ends_with("/conf.yaml") && second.ends_with("/other.yaml"), "{files:?}");
    for uri in [first, *second] {
        assert_eq!(content(uri).await.as_deref(), Some("a: b"));
    }

    // While a live submission uses the files, they stay, and so do their copies.
    let (files, service) = (world.service.files.clone(), &world.service);
    let old = "UPDATE files SET last_used_at = now() - interval '1 day'";
    sqlx::query(old).execute(&world.pool).await.unwrap();
    assert_eq!(files.clean_up(None).await.unwrap().files, 0);
    let tomorrow = chrono::Utc::now() + chrono::TimeDelta::hours(25);
    assert_eq!(files.sweep(tomorrow).await.unwrap().orphans, 0);
    for id in [&id, &again] {
        let end = "UPDATE submissions SET state = 'FINISHED', finished_at = now() WHERE id = $1";
        sqlx::query(end).bind(id.as_str()).execute(&world.pool).await.unwrap();
    }
    assert_eq!(files.clean_up(None).await.unwrap().files, 0, "they were used until now");
    // One of them as if its gateway had been killed before it deleted the objects.
    sqlx::query("DELETE FROM files WHERE sha256 = $1").bind(&conf).execute(&world.pool).await.unwrap();
    assert_eq!(service.files.sweep(tomorrow).await.unwrap().orphans, 3, "the object and its two copies");
    sqlx::query(old).execute(&world.pool).await.unwrap();
    assert_eq!(files.clean_up(None).await.unwrap().files, 1);
    for uri in [&uris[0], first, *second] {
        assert_eq!(content(uri).await, None, "{uri}");
    }
}

#[sqlx::test]
async fn a_submission_that_is_not_accepted_holds_no_files(pool: PgPool) {
    let mut world = World::new(pool).await;
    let dir = tempfile::tempdir().unwrap();
    let _routes = keep_files(&mut world, dir.path()).await;
    let resource = format!("sparkgate-file:/{}/job.py", upload(&world.service, "print(1)").await);
    let uses = || sqlx::query_scalar::<_, i64>("SELECT count(*) FROM file_uses").fetch_one(&world.pool);
    let attempt = async |properties: &[(&str, &str)]| {
        let mut request = world.request(properties);
        request.app_resource.clone_from(&resource);
        world.service.submissions.create(&world.service.anonymous(), request).await
    };
    assert!(attempt(&[("spark.executor.memory", "lots")]).await.is_err());
    assert_eq!(uses().await.unwrap(), 0);
    let named = [("spark.sparkgate.clientId", "mine")];
    attempt(&named).await.unwrap();
    assert!(attempt(&named).await.is_err(), "another submission has the id");
    assert_eq!(uses().await.unwrap(), 1, "that of the accepted one");
}
