//! The state of the installation, for its operators.

use std::collections::BTreeMap;

use axum::{extract::State, http::Uri, response::Response};
use chrono::{DateTime, TimeDelta, Utc};
use maud::{Markup, html};

use super::{
    layout::{Frame, Section, word},
    page::page,
    text::{ago, duration},
};
use sparkgate_service::{Checked, InstallationOverview, LiveCount, OpenStreams, Readiness, Session, doctor::Level};
use sparkgate_web::{problem::Problem, session::Caller, state::AppState};

/// The beginning of the names of replicas' leases.
const REPLICA: &str = "replica/";

/// Shows the installation.
pub(super) async fn show(State(state): State<AppState>, Caller(caller): Caller, uri: Uri) -> Result<Response, Problem> {
    let installation = state.service.overview.installation(&caller).await?;
    let readiness = state.service.health.readiness().await;
    let now = Utc::now();
    let content = html! {
        h1.hidden { "Operator" }
        div #installation data-live data-poll {
            (health(&readiness, &installation))
            div.columns {
                (replicas(&installation, now))
                (watches(&installation, now))
            }
            (tenants(&installation, &caller))
            (checks(installation.checked.as_deref(), now))
        }
        (releases(&caller))
    };
    let frame =
        Frame { title: "Operator", section: Section::Operator, path: uri.path(), caller: Some(&caller), live: None };
    Ok(page(frame.around(&content)))
}

fn health(readiness: &Readiness, installation: &InstallationOverview) -> Markup {
    let (class, word, why) = match readiness {
        Readiness::Ready => ("finished", "Ready", None),
        Readiness::Accepting(why) => ("pending", "Accepting, and an operator has to look", Some(why)),
        Readiness::NotReady(why) => ("failed", "Not ready", Some(why)),
    };
    html! {
        section {
            h2 { "This replica" }
            p { span class={ "state " (class) } { (word) } " " span.quiet { "Sparkgate " (env!("CARGO_PKG_VERSION")) } }
            @if let Some(why) = why { p.message { (super::text::cut(&why.to_string(), 2000)) } }
            p { "Subscribers: " (installation.subscribers.all) ". Log readers: " (installation.log_readers.all) "." }
        }
    }
}

fn replicas(installation: &InstallationOverview, now: DateTime<Utc>) -> Markup {
    let leases = &installation.leases;
    let replicas = leases.iter().filter(|lease| lease.name.starts_with(REPLICA) && lease.alive);
    let held = |holder: &str| {
        let names: Vec<&str> = leases
            .iter()
            .filter(|lease| lease.alive && lease.holder == holder && !lease.name.starts_with(REPLICA))
            .map(|lease| lease.name.as_str())
            .collect();
        names.join(", ")
    };
    html! {
        section {
            h2 { "Replicas " span.count { (replicas.clone().count()) } }
            table.plain {
                thead { tr { th scope="col" { "Host" } th scope="col" { "Leases" } th.number scope="col" { "Valid for" } } }
                tbody {
                    @for replica in replicas {
                        tr {
                            th scope="row" {
                                @let session = replica.holder.get(..8).unwrap_or(&replica.holder);
                                @match &replica.host { Some(host) => span title={ "session " (session) } { (word(host)) }, None => code { (session) } }
                            }
                            td.wide { (word(&held(&replica.holder))) }
                            td.number { (duration((replica.expires_at - now).max(TimeDelta::zero()))) }
                        }
                    }
                }
            }
            @let free: Vec<_> = leases.iter().filter(|lease| !lease.alive && !lease.name.starts_with(REPLICA)).collect();
            @if !free.is_empty() {
                p.quiet { "Expired: " @for lease in free { (word(&lease.name)) " (" (ago(lease.expires_at, now)) ") " } }
            }
        }
    }
}

fn watches(installation: &InstallationOverview, now: DateTime<Utc>) -> Markup {
    html! {
        section {
            h2 { "Watches" }
            @if installation.watches.is_empty() { p.quiet { "None has stored a position yet." } }
            table.plain {
                thead { tr { th scope="col" { "Namespace" } th scope="col" { "Position" } th scope="col" { "Stored" } } }
                tbody {
                    @for watch in &installation.watches {
                        tr {
                            th scope="row" { @if matches!(watch.scope.as_str(), "" | "*") { "all" } @else { (word(&watch.scope)) } }
                            td { code { (word(&watch.resource_version)) } }
                            td { (ago(watch.at, now)) }
                        }
                    }
                }
            }
            p.quiet { "A position is stored when it moves: an old one is normal where no pod changes." }
        }
    }
}

fn tenants(installation: &InstallationOverview, caller: &Session) -> Markup {
    let InstallationOverview { live, subscribers, log_readers, .. } = installation;
    let mut by_tenant: BTreeMap<&str, BTreeMap<&str, &LiveCount>> = BTreeMap::new();
    for count in live {
        by_tenant.entry(&count.tenant).or_default().insert(&count.state, count);
    }
    for tenant in caller.access().tenants() {
        by_tenant.entry(&tenant.name).or_default();
    }
    let held = |streams: &OpenStreams, tenant: &str| streams.of_tenants.get(tenant).copied().unwrap_or(0);
    for tenant in subscribers.of_tenants.keys().chain(log_readers.of_tenants.keys()) {
        by_tenant.entry(tenant).or_default();
    }
    let cap = |limit: Option<String>| limit.unwrap_or_else(|| "–".to_owned());
    html! {
        section {
            h2 { "Tenants" }
            div.scroll tabindex="0" role="region" aria-label="Tenants" {
                table.plain {
                    thead {
                        tr {
                            th scope="col" { "Tenant" } th.number scope="col" { "Queued" } th.number scope="col" { "of at most" }
                            th.number scope="col" { "Launching" } th.number scope="col" { "Pending" } th.number scope="col" { "Running" }
                            th.number scope="col" { "Killing" } th.number scope="col" { "Oldest waits" }
                            th.number scope="col" { "Subscribers" } th.number scope="col" { "of at most" }
                            th.number scope="col" { "Log readers" } th.number scope="col" { "of at most" }
                        }
                    }
                    tbody {
                        @for (name, states) in &by_tenant {
                            @let limits = caller.access().tenant(name).map(|tenant| &tenant.limits);
                            @let count = |state: &str| states.get(state).map_or(0, |count| count.count);
                            @let oldest = states.values().filter_map(|count| count.oldest).fold(0.0, f64::max);
                            tr {
                                th scope="row" { (word(name)) }
                                td.number { (count("QUEUED")) }
                                td.number { (cap(limits.and_then(|limits| limits.queued).map(|most| most.to_string()))) }
                                td.number { (count("LAUNCHING")) }
                                td.number { (count("PENDING")) }
                                td.number { (count("RUNNING")) }
                                td.number { (count("KILLING")) }
                                td.number { @if oldest > 0.0 { (duration(TimeDelta::milliseconds((oldest * 1000.0) as i64))) } @else { "–" } }
                                td.number { (held(subscribers, name)) }
                                td.number { (cap(limits.and_then(|limits| limits.subscribers).map(|most| most.to_string()))) }
                                td.number { (held(log_readers, name)) }
                                td.number { (cap(limits.and_then(|limits| limits.log_readers).map(|most| most.to_string()))) }
                            }
                        }
                    }
                }
            }
            p.quiet {
                "Subscribers and log readers are those of this replica, with its limits. Callers that read all tenants are counted for none."
            }
        }
    }
}

/// Shows what the checks found: first what is wrong.
fn checks(checked: Option<&Checked>, now: DateTime<Utc>) -> Markup {
    let findings = checked.map(|checked| checked.findings.as_slice()).unwrap_or_default();
    let rows = |wanted: &dyn Fn(Level) -> bool| {
        html! {
            table.plain {
                thead { tr { th scope="col" { "Level" } th scope="col" { "Check" } th scope="col" { "Finding" } } }
                tbody {
                    @for finding in findings.iter().filter(|finding| wanted(finding.level)) {
                        tr {
                            td { span class={ "state " (colour(finding.level)) } { (finding.level.as_str()) } }
                            th scope="row" { code { (finding.check) } }
                            td.wide {
                                (word(&finding.message))
                                @if let Some(remedy) = &finding.remedy { p.remedy { (word(remedy)) } }
                            }
                        }
                    }
                }
            }
        }
    };
    let is_wrong = |level: Level| level >= Level::Warning;
    let wrong = findings.iter().filter(|finding| is_wrong(finding.level)).count();
    html! {
        section #checks {
            h2 { "Checks " @if checked.is_some() { span.count { (wrong) } } }
            @match checked {
                None => p.quiet { "They are running." },
                Some(checked) => {
                    @if wrong == 0 { p { "Nothing is wrong." } } @else { (rows(&is_wrong)) }
                    @if findings.len() > wrong {
                        details { summary { (findings.len() - wrong) " more" } (rows(&|level| !is_wrong(level))) }
                    }
                    p.quiet {
                        "By this replica, " (ago(checked.at, now)) @if !checked.is_whole { ", broken off after a minute" } ". "
                        code { "sparkgate doctor" } " checks files and the database's settings, too. Metrics are at " code { "/metrics" }
                        " of the management port."
                    }
                }
            }
        }
    }
}

fn colour(level: Level) -> &'static str {
    match level {
        Level::Ok => "finished",
        Level::Skipped => "queued",
        Level::Warning => "pending",
        Level::Failure => "failed",
    }
}

fn releases(caller: &Session) -> Markup {
    let lines = caller.spark_lines();
    html! {
        section {
            h2 { "Spark releases" }
            table.plain {
                thead { tr { th scope="col" { "Release" } th scope="col" { "Line" } th scope="col" { "Image" } } }
                tbody {
                    @for version in lines.versions() {
                        tr {
                            th scope="row" { (version) @if version == lines.default_version() { " (default)" } }
                            td { (version.line()) }
                            td.wide { @if let Some(image) = lines.image(version) { (word(image)) } @else { span.quiet { "of the defaults" } } }
                        }
                    }
                }
            }
        }
    }
}
