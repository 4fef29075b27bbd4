//! Faults of the gateway itself, as it once had them: with each, some history has to go wrong. They show that the checks can find
//! what they are for.

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Flaw {
    /// A renewal extends every lease of the session, also those that were resigned.
    RenewsWhatItResigned,
    /// A replica whose watch is broken keeps the lease of the watch.
    KeepsTheWatch,
    /// Any 404 is taken for Kubernetes' own.
    TakesPagesForAnswers,
    /// An observation that can't be processed holds up those behind it.
    HoldsUpTheWatch,
    /// A namespace over its quota refuses a submission for good.
    EndsOverQuota,
    /// The fields of a pod by which its kubelet starts the driver again aren't looked at.
    IgnoresRestarts,
    /// A replica that is cut off keeps claims that it doesn't know of, because their reply was lost.
    KeepsUnknownClaims,
    /// A launch doesn't record that its attempt gets more memory.
    GrowsUnrecorded,
    /// A submission that can't be admitted, because its row is locked, is picked again in each round.
    PicksTheSameAgain,
    /// The uses of a session don't count: it is ended some time after its start.
    IgnoresUses,
}
