//! `sparkgate doctor`: checks all that a gateway needs, and prints a line for each check.

pub(super) mod files;

use std::{
    io::{self, Write},
    process::ExitCode,
    sync::Arc,
};

use serde_json::json;

use super::{
    arguments::ResolvedSettings,
    settings::{Logs, Serve},
};
use sparkgate_cluster::Cluster;
use sparkgate_service::{
    AccessFile,
    doctor::{
        Defaults, Finding, Level, check_admission, check_api_server, check_creators, check_database, check_encryption,
        check_files, check_home, check_kueue, check_lineage, check_namespaces, check_owner, check_pods,
        check_service_accounts,
    },
    error_chain,
};
use sparkgate_store::Store;

/// Runs all checks. What can't be checked because of a failure is left out.
pub(super) async fn examine(settings: &Serve, logs: &Logs, resolved: &ResolvedSettings) -> Vec<Finding> {
    let files::Checked { mut findings, access, keys } = files::check(settings, logs).await;
    for finding in &mut findings {
        finding.message.push_str(&resolved.notes(&finding.message).replace('\n', ";").replace("  ", " "));
    }
    let files = match settings.files.open() {
        Ok(Some((files, settings))) => {
            findings.push(check_files(&files, &settings).await);
            Some(files)
        }
        Ok(None) => None,
        Err(error) => {
            findings.push(Finding::failure("files.store", format!("{error:#}"), "correct the setting"));
            None
        }
    };
    let store = match settings.database.settings() {
        Ok(database) => check_database(&database, &mut findings).await,
        Err(_) => {
            // What is wrong with a URL is a finding already.
            if !settings.database.is_set() {
                let remedy = "give --database-url (SPARKGATE_DATABASE_URL): postgres://user:password@host:port/name";
                findings.push(Finding::failure("settings.database", "no database is named", remedy));
            }
            None
        }
    };
    if let (Some(store), Some(keys)) = (&store, &keys) {
        findings.push(check_encryption(store, keys).await);
    }
    if let (Some(store), Some(files)) = (&store, files) {
        findings.push(check_owner(store, files).await);
    }
    if let (Some(store), Some(access)) = (&store, &access) {
        findings.push(check_creators(store, access.current().access()).await);
    }
    if let Some(server) = settings.webhooks.lineage_server() {
        findings.push(check_lineage(&server).await);
    }
    in_cluster(settings, access, store.as_ref(), &mut findings).await;
    if let Some(store) = store {
        store.close().await;
    }
    findings
}

async fn in_cluster(
    settings: &Serve,
    access: Option<Arc<AccessFile>>,
    store: Option<&Store>,
    findings: &mut Vec<Finding>,
) {
    let defaults = access.as_deref().map(Defaults::new);
    findings.extend(defaults.iter().flat_map(Defaults::check_images));
    let (cluster, url) = match Cluster::open(&settings.kubernetes.place.settings()).await {
        Ok(opened) => opened,
        Err(error) => {
            let remedy = "give --kubeconfig, or run this in a pod of the gateway";
            return findings.push(Finding::failure("kubernetes.reachable", error_chain(&error), remedy));
        }
    };
    if !check_api_server(&cluster, &url, findings).await {
        return;
    }
    check_namespaces(&cluster, findings).await;
    if let Some(defaults) = &defaults {
        check_service_accounts(&cluster, defaults, findings).await;
    }
    if let Some(access) = access {
        let (current, setting) = (access.current(), settings.kueue.settings());
        check_kueue(&cluster, current.access(), &setting, findings).await;
        check_admission(&cluster, access, findings).await;
    }
    if let Some(store) = store {
        findings.push(check_home(store, &cluster).await);
        check_pods(store, &cluster, findings).await;
    }
}

/// Prints the findings. The exit code is 1 if there is a failure.
///
/// # Errors
/// The output can't be written.
pub(super) fn print(findings: &[Finding], as_json: bool, mut output: impl Write) -> io::Result<ExitCode> {
    let count = |level| findings.iter().filter(|finding| finding.level == level).count();
    let (failures, warnings) = (count(Level::Failure), count(Level::Warning));
    if as_json {
        let document = json!({"findings": findings, "failures": failures, "warnings": warnings});
        writeln!(output, "{document:#}")?;
    } else {
        let width = findings.iter().map(|finding| finding.check.len()).max().unwrap_or_default();
        for Finding { check, level, message, remedy } in findings {
            writeln!(output, "{:7}  {check:width$}  {message}", level.as_str())?;
            if let Some(remedy) = remedy {
                writeln!(output, "{:7}  {:width$}  → {remedy}", "", "")?;
            }
        }
        let counted = |count: usize, noun: &str| format!("{count} {noun}{}", if count == 1 { "" } else { "s" });
        writeln!(output, "\n{}, {}", counted(failures, "failure"), counted(warnings, "warning"))?;
    }
    Ok(if failures == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_counts_failures_and_warnings() {
        let (failure, warning) = (Finding::failure("a", "b", "c"), Finding::warning("d", "e", "f"));
        for (findings, line, failed) in [
            (vec![], "0 failures, 0 warnings", false),
            (vec![warning.clone()], "0 failures, 1 warning", false),
            (vec![failure, warning.clone(), warning], "1 failure, 2 warnings", true),
        ] {
            let mut output = Vec::new();
            let code = print(&findings, false, &mut output).unwrap();
            let text = String::from_utf8(output).unwrap();
            assert_eq!(text.lines().last(), Some(line), "{text}");
            assert_eq!(code == ExitCode::FAILURE, failed);
        }
    }
}
