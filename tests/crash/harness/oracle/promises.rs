//! Compares what the clients and readers of a run saw with the promises, as a user's own run of `sparkgate-check` does.

use std::time::Duration;

use sparkgate_check::{
    history::Pod,
    judge as of_history,
    play::{Gateway, finals},
    promises::Verdict,
};
use tokio::time::Instant;

use crate::harness::{truth::PodTruth, world::World};

/// The time to read what is there at the end.
const PATIENCE: Duration = Duration::from_secs(120);

/// Judges a run that has settled, and whose readers have read everything.
pub(crate) async fn judge(world: &mut World) -> Verdict {
    let gateways = &world.clients.gateways;
    let gateways: Vec<_> = gateways
        .iter()
        .map(|gateway| {
            let token = gateway.credentials.as_deref().and_then(|value| value.strip_prefix("Bearer "));
            Gateway::at(&format!("http://{}", gateway.address), token, None).unwrap()
        })
        .collect();
    let recorder = &world.clients.recorder;
    finals::record(&gateways, &world.namespace, recorder, Instant::now() + PATIENCE).await.unwrap();
    let mut history = recorder.history();
    let pod = |(uid, pod): (String, PodTruth)| Pod {
        uid,
        submission: pod.submission,
        attempt: pod.attempt.into(),
        started: pod.started,
    };
    history.pods = super::pods(world).0.into_iter().map(pod).collect();
    of_history(&history)
}
