//! From the text of a request to the stored text of its driver's objects, on one thread: all of accepting but the
//! database. The baseline is JSON alone: reading the same request and writing the same objects.

use std::{hint::black_box, time::Duration};

use anyhow::Context;
use sparkgate::{
    app::render::{driver, render},
    cluster::Manifest,
    service::SparkSettings,
    spark::rest::parse_create,
};
use sparkgate_testing::request::request;
use tokio::{task::spawn_blocking, time::Instant};

use super::spark::settings;
use crate::{
    bench::{Bench, Name},
    report::Report,
    samples::Samples,
};

/// Calls between two readings of the clock.
const BATCH: usize = 50;

pub(crate) async fn run(bench: &Bench) -> anyhow::Result<()> {
    let mut report = Report::new(Name::Render, bench);
    let time = Duration::from_millis(bench.size(5000) as u64);
    let settings = settings();
    let (mut drivers, mut objects, mut each) = (Samples::default(), Samples::default(), Samples::default());
    let (mut json, mut share) = (Samples::default(), Samples::default());
    for _ in 0..bench.runs {
        let settings = settings.clone();
        let (ours, alone, objects_each) = spawn_blocking(move || once(&settings, time)).await??;
        drivers.push(ours);
        objects.push(ours * objects_each);
        each.push(1e6 / ours);
        json.push(alone);
        share.push(alone / ours);
    }
    report.add("drivers rendered, one thread", "/s", &drivers);
    report.add("their objects", "/s", &objects);
    report.add("one driver", "µs", &each);
    report.add("JSON alone: the request read, the objects written", "/s", &json);
    report.add("rendering takes, of JSON alone", "×", &share);
    report.publish(bench)
}

/// Returns drivers per second, the same for JSON alone, and the number of a driver's objects.
fn once(settings: &SparkSettings, time: Duration) -> anyhow::Result<(f64, f64, f64)> {
    let body = request(1, "default");
    let list = render(&body, settings)?;
    let objects = list["items"].as_array().context("a list without items")?.len();
    let ours = rate(time, || {
        let (request, _) = parse_create(black_box(&body), settings.version)?;
        Ok(Manifest::text_of(&driver(request, settings)?, None::<&()>)?)
    })?;
    let alone = rate(time, || {
        let request: serde_json::Value = serde_json::from_slice(black_box(&body))?;
        black_box(request);
        Ok(black_box(&list).to_string())
    })?;
    Ok((ours, alone, objects as f64))
}

fn rate(time: Duration, mut call: impl FnMut() -> anyhow::Result<String>) -> anyhow::Result<f64> {
    let (begun, mut calls) = (Instant::now(), 0);
    while begun.elapsed() < time {
        for _ in 0..BATCH {
            black_box(call()?);
        }
        calls += BATCH;
    }
    Ok(calls as f64 / begun.elapsed().as_secs_f64())
}
