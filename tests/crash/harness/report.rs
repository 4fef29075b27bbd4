//! The parameters and results of a run, as a table.

use std::{collections::BTreeMap, fmt, time::Duration};

use super::{
    chaos::Blows,
    oracle::{Verdict, stored::Stored},
    queues::Seen,
    takeover::Takeovers,
    world::Setting,
};

#[derive(Debug)]
pub(crate) struct Report {
    pub(crate) seed: u64,
    /// The actions of others on pods, with their counts.
    pub(crate) acts: BTreeMap<String, usize>,
    pub(crate) queues: Option<Seen>,
    pub(crate) jobs: u32,
    pub(crate) accepted: usize,
    pub(crate) in_doubt: usize,
    pub(crate) said_in_doubt: usize,
    pub(crate) put_off: usize,
    pub(crate) kills_asked: usize,
    pub(crate) replicas: usize,
    pub(crate) setting: Setting,
    pub(crate) blows: Blows,
    pub(crate) starts: usize,
    pub(crate) replies_lost: usize,
    pub(crate) verdict: Verdict,
    /// What the clients and readers saw, compared with the promises.
    pub(crate) promises: sparkgate_check::promises::Verdict,
    /// Logs and files, as they were read at the end.
    pub(crate) stored: Stored,
    /// From the end of the storm until every submission had ended.
    pub(crate) settled_after: Duration,
    pub(crate) takeovers: Takeovers,
    /// The events that were streamed, and read in pages, and the messages to a webhook.
    pub(crate) read: (usize, usize, usize),
    pub(crate) took: Duration,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (blows, verdict) = (&self.blows, &self.verdict);
        let states: Vec<_> = verdict.states.iter().map(|(state, count)| format!("{count} {state}")).collect();
        let mut line = |name: &str, value: String| writeln!(f, "{name:<36}{value}");
        line("seed", self.seed.to_string())?;
        line("jobs accepted in the storm", self.jobs.to_string())?;
        line("accepted in all", self.accepted.to_string())?;
        let doubt = format!("{} ({} were stored)", self.in_doubt, verdict.unacknowledged);
        line("in doubt for their clients", doubt)?;
        line("  of those reported by the gateway", self.said_in_doubt.to_string())?;
        line("refused (503, or no process listened)", self.put_off.to_string())?;
        line("kills requested by clients", self.kills_asked.to_string())?;
        line("replicas", self.replicas.to_string())?;
        let tenants = if self.setting.tenants { "5, 3 of them bad neighbours" } else { "1" };
        line("tenants", tenants.to_owned())?;
        if let Some(Seen { files, samples, full, admitted, running, violations, .. }) = &self.queues {
            line("queues: changes of the access file", files.to_string())?;
            line("  samples, of those with a full queue", format!("{samples}, {full}"))?;
            line("  admitted at once, running at once", format!("{admitted}, {running} at most"))?;
            line("  over a cap", violations.len().to_string())?;
        }
        line("submissions from before", self.setting.old.to_string())?;
        line("replicas killed (SIGKILL)", format!("{}, {} starts in all", blows.kills, self.starts))?;
        line("replicas stopped for 4 to 8 s", blows.pauses.to_string())?;
        line("Postgres killed", blows.postgres.to_string())?;
        line("kube-apiserver, etcd killed", format!("{}, {}", blows.apiserver, blows.etcd))?;
        line("etcd compacted", blows.compactions.to_string())?;
        line("connections cut, refused, half-open", blows.network.to_string())?;
        line("one replica cut off for 4 to 9 s", blows.isolations.to_string())?;
        line("…and for a third of the storm", blows.long_isolations.to_string())?;
        line("pages instead of answers of the cluster", blows.pages.to_string())?;
        line("an old snapshot throughout", blows.snapshot.to_string())?;
        line("rights removed for a while", blows.denials.to_string())?;
        line("webhooks that change, delay or deny pods", blows.webhooks.to_string())?;
        line("locks, open transactions, ended backends", blows.locks.to_string())?;
        line("object store away, losing, listing in part", blows.objects.to_string())?;
        let acts: Vec<_> = self.acts.iter().map(|(act, count)| format!("{count} {act}")).collect();
        line("actions of others on pods", acts.join(", "))?;
        line("requests carried out, reply lost", self.replies_lost.to_string())?;
        line("outcomes", states.join(", "))?;
        let (sessions, idle) = verdict.sessions;
        line("sessions, ended because they were idle", format!("{sessions}, {idle}"))?;
        let created = format!("{} ({} not in the audit log)", verdict.creates, verdict.unlogged_creates);
        line("driver pods created", created)?;
        line("drivers started", verdict.starts.to_string())?;
        line("second pods (never started, reaped)", verdict.extra_creates.to_string())?;
        line("accepted and lost", verdict.lost.to_string())?;
        line("wrong outcomes", verdict.wrong_outcomes.to_string())?;
        line("violations in all", verdict.violations.len().to_string())?;
        line("settled after the storm", format!("{:.1} s", self.settled_after.as_secs_f64()))?;
        let (streamed, paged, received) = self.read;
        line("events streamed, paged; messages", format!("{streamed}, {paged}; {received}"))?;
        let Stored { whole_logs, other_logs, files, deleted_files, requests: (requests, refused) } = self.stored;
        line("requests to the object store", format!("{requests}, {refused} refused"))?;
        line("logs read whole; cut or gone", format!("{whole_logs}; {other_logs}"))?;
        line("files accepted, deleted", format!("{files}, {deleted_files}"))?;
        line("takeover of a killed replica's work", self.takeovers.to_string())?;
        line("duration", format!("{:.0} s", self.took.as_secs_f64()))?;
        self.promises.fmt(f)
    }
}
