//! Sessions of Spark Connect in the model: what only they have, and when they are idle.

use sparkgate::submission::State;

use super::{Store, Time};

#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ConnectSession {
    idle: Time,
    used_at: Option<Time>,
}

impl Store {
    /// Makes a submission a session, which is ended after so long without a use.
    pub(crate) fn open_session(&mut self, submission: usize, idle: Time) {
        self.sessions.insert(submission, ConnectSession { idle, used_at: None });
    }

    /// Notes that a client uses a session.
    pub(crate) fn note_use(&mut self, submission: usize) {
        let now = self.now;
        if let Some(session) = self.sessions.get_mut(&submission) {
            session.used_at = Some(now);
        }
    }

    /// Returns the sessions that run and that no client has used for their time. Without `uses`, only their starts count.
    pub(crate) fn idle_sessions(&self, uses: bool) -> Vec<usize> {
        let is_idle = |(submission, session): (&usize, &ConnectSession)| {
            let row = self.row(*submission).filter(|row| row.state == State::Running)?;
            let since = row.started_at.max(session.used_at.filter(|_| uses))?;
            (since + session.idle < self.now).then_some(*submission)
        };
        self.sessions.iter().filter_map(is_idle).collect()
    }
}
