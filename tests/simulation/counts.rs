//! Counts of events, which show that a run covered what it claims to cover.

use sparkgate::submission::{State, engine::Effect};

macro_rules! counted {
    ($($name:ident $words:literal)*) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum Count { $($name),* }

        impl Count {
            pub(crate) const ALL: &[(Count, &str)] = &[$((Count::$name, $words)),*];
        }
    };
}

counted! {
    History "histories"
    WithoutFinalizer "…without the finalizer"
    Guarded "…with a tenant in whose namespaces only the gateway acts"
    Step "steps"
    Submission "submissions"
    Session "…that are sessions"
    SessionUsed "uses of sessions"
    SessionIdle "sessions ended because they were idle"
    WithQueues "…with queues"
    Admitted "queues: admitted"
    RoundVoid "queues: decisions that were void"
    RoomKept "queues: decisions that kept room free"
    PickSetAside "queues: picks that couldn't be admitted, and were set aside"
    FileChanged "queues: changes of the access file"
    CapLowered "…below what was admitted"
    Held "queues: held"
    Released "queues: released"
    Read "effects: read the row"
    LookUp "effects: look the pod up"
    CreateBefore "effects: create an object before the pod"
    CreatePod "effects: create the pod"
    RecordPod "effects: record the pod"
    HandOver "effects: make the pod an object's owner"
    CreateBeside "effects: create an object beside the pod"
    DeleteBefore "effects: delete an object created before the pod"
    Delete "effects: delete a pod"
    RemoveFinalizer "effects: remove the finalizer"
    RestoreLabels "effects: restore a pod's labels"
    Advance "effects: advance the row"
    NoteWaiting "effects: note the reason of a wait"
    Crash "faults: replica crashed"
    Pause "faults: replica paused"
    RequestLost "faults: request lost"
    ReplyLost "faults: reply lost"
    GivenUpWaiting "faults: reply timed out, request carried out later"
    DatabaseAway "faults: database unavailable"
    ClusterAway "faults: API server unavailable"
    Pages "faults: a proxy answered for the API server"
    OneCutOff "…of these, for one of several replicas"
    TenantTrouble "faults: a tenant's writes hang, are denied or over quota, or its rows locked"
    LastsOffCluster "lasting: a replica cut off from the API server"
    LastsUnableToResign "…which can't resign a lease either"
    LastsPages "lasting: a proxy answers a replica for the API server"
    LastsOffDatabase "lasting: a replica cut off from the database"
    LastsStopped "lasting: a replica stopped"
    LastsTenant "lasting: one tenant's namespaces in trouble"
    GaveUpTheWatch "watches given up by a replica that is cut off"
    SetAside "observations set aside"
    Denied "faults: API server denied an effect for a while"
    ClockForwards "faults: database clock jumped forwards"
    ClockBackwards "faults: database clock jumped backwards"
    WatchCut "faults: watch cut, events dropped"
    Repeated "faults: event repeated"
    Reordered "faults: events reordered"
    Compacted "faults: changes compacted away"
    Refusal "faults: object refused"
    Stopped "replicas shut down gracefully"
    SteppedDown "sessions given up for a doubtful lease"
    Takeover "claims taken over"
    WatchTakeover "watches taken over"
    Resumed "watches resumed at their position"
    Relisted "lists"
    Kill "kills requested"
    Overdue "submissions killed after a time limit"
    RetriedInfrastructure "attempts that followed one the cluster ended"
    RetriedApplication "attempts that followed one that failed"
    RetriedCapacity "attempts that followed one that found no node"
    RetriedQuota "attempts that followed one that a quota had no room for"
    RetriedMemory "attempts that followed one whose memory ran out"
    Restarted "attempts that followed any end"
    RecordGrowth "…whose growth of memory was recorded"
    Unschedulable "pods for which there was no node"
    KeepAttempt "…whose names were generated"
    Retention "rows deleted by retention"
    DeletedOutside "outside: pod deleted"
    ForcedOutside "outside: pod deleted by force"
    Stripped "outside: finalizer removed"
    Foreign "outside: foreign pod under our name"
    Forged "outside: pod with our labels, forged"
    LabelsTaken "outside: labels removed"
    IdentityTaken "outside: identity removed"
    Replaced "outside: pod replaced by a copy under its name"
    Posed "outside: pod forged under another name"
    PosedAcross "…with the labels of another tenant's submission"
    PosedSigned "…with the identity of another pod"
    Relabelled "outside: labels overwritten by another submission's"
    Resigned "outside: identity overwritten by another pod's"
    Disguised "…both, so that nothing shows whose the pod is"
    KillAcross "kills of another tenant's submission requested"
    KillAll "kills of all submissions of a tenant requested"
    Cleared "ended submissions of a tenant cleared"
    Archived "logs archived"
    Started "drivers started"
    Ended "drivers ended"
    Restarts "pods that a webhook lets their kubelet start again"
    Evicted "drivers evicted"
    Preempted "drivers preempted"
    NodeVanished "nodes vanished"
    Stray "pods created by a writer whose claim was lost"
    Reaped "…and reaped"
    StrayStarted "…and started, by a second such writer"
    Finished "outcomes: FINISHED"
    Failed "outcomes: FAILED"
    Killed "outcomes: KILLED"
    Error "outcomes: ERROR"
    Lost "outcomes: LOST"
}

#[derive(Debug, Clone)]
pub(crate) struct Counts([u64; Count::ALL.len()]);

impl Default for Counts {
    fn default() -> Self {
        Self([0; Count::ALL.len()])
    }
}

impl Counts {
    pub(crate) fn add(&mut self, what: Count) {
        self.0[what as usize] += 1;
    }

    pub(crate) fn get(&self, what: Count) -> u64 {
        self.0[what as usize]
    }

    pub(crate) fn join(&mut self, other: &Self) {
        for (mine, theirs) in self.0.iter_mut().zip(other.0) {
            *mine += theirs;
        }
    }

    pub(crate) fn effect(&mut self, effect: &Effect) {
        self.add(match effect {
            Effect::Read => Count::Read,
            Effect::LookUp => Count::LookUp,
            Effect::CreateBefore(_) => Count::CreateBefore,
            Effect::CreatePod => Count::CreatePod,
            Effect::RecordPod(_) => Count::RecordPod,
            Effect::HandOver(..) => Count::HandOver,
            Effect::CreateBeside(..) => Count::CreateBeside,
            Effect::DeleteBefore(_) => Count::DeleteBefore,
            Effect::Delete(_) => Count::Delete,
            Effect::RemoveFinalizer(_) => Count::RemoveFinalizer,
            Effect::RestoreLabels(_) => Count::RestoreLabels,
            Effect::Advance(..) => Count::Advance,
            Effect::NoteWaiting { .. } => Count::NoteWaiting,
            // No request: the state machine has finished.
            Effect::Settle(_) => return,
        });
    }

    pub(crate) fn outcome(&mut self, state: State) {
        self.add(match state {
            State::Finished => Count::Finished,
            State::Failed => Count::Failed,
            State::Killed => Count::Killed,
            State::Error => Count::Error,
            State::Lost => Count::Lost,
            _ => return,
        });
    }

    /// Returns the events that never occurred.
    pub(crate) fn missing(&self) -> Vec<&'static str> {
        Count::ALL.iter().filter(|(what, _)| self.get(*what) == 0).map(|(_, words)| *words).collect()
    }

    pub(crate) fn table(&self) -> String {
        Count::ALL.iter().map(|(what, words)| format!("{words:<52} {:>14}\n", self.get(*what))).collect()
    }
}
