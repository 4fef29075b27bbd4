//! What an exceeded `ResourceQuota` says: which resource has no room, and whether it ever will.

use sparkgate_spark::Quantity;

/// What each message about an exceeded quota has.
pub(super) const EXCEEDED: &str = "exceeded quota";

/// For how long a quota refuses an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Exceeded {
    /// Until others have ended.
    Now,
    /// Until the quota is raised: the object alone needs more than there is. With the sum in words.
    Always(String),
}

/// Reads the message of the API server's admission plugin, `CheckRequest`: `exceeded quota: q, requested: pods=1, used: pods=5,
/// limited: pods=5`. The lists have only resources that are exceeded. `None` for any other message.
pub(super) fn exceeded(message: &str) -> Option<Exceeded> {
    let (_, message) = message.split_once("is forbidden: exceeded quota: ")?;
    let (quota, message) = message.split_once(", requested: ")?;
    let (requested, message) = message.split_once(", used: ")?;
    let (_, limited) = message.split_once(", limited: ")?;
    let too_much = amounts(requested).find_map(|(resource, wanted)| {
        let (_, limit) = amounts(limited).find(|(limited, _)| *limited == resource)?;
        let is_beyond = Quantity::parse(wanted)? > Quantity::parse(limit)?;
        is_beyond.then(|| format!("it needs {resource}={wanted}, and the quota {quota} has {limit} in all"))
    });
    Some(too_much.map_or(Exceeded::Now, Exceeded::Always))
}

/// Returns the amounts of a list, `pods=1,requests.cpu=2`.
fn amounts(list: &str) -> impl Iterator<Item = (&str, &str)> {
    list.split(',').filter_map(|pair| pair.trim().split_once('='))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(requested: &str, used: &str, limited: &str) -> Option<Exceeded> {
        exceeded(&format!(
            "pods \"pi-driver\" is forbidden: exceeded quota: team-a, requested: {requested}, used: {used}, limited: {limited}"
        ))
    }

    #[test]
    fn a_quota_that_others_use_up_has_room_later_and_one_that_is_too_small_never() {
        assert_eq!(of("pods=1", "pods=5", "pods=5"), Some(Exceeded::Now));
        assert_eq!(of("requests.memory=1408Mi", "requests.memory=3Gi", "requests.memory=4Gi"), Some(Exceeded::Now));
        assert_eq!(of("requests.cpu=1", "requests.cpu=500m", "requests.cpu=1"), Some(Exceeded::Now), "all of it");
        let never = |why: &str| Some(Exceeded::Always(why.to_owned()));
        assert_eq!(
            of("pods=1,requests.cpu=8", "pods=5,requests.cpu=0", "pods=5,requests.cpu=7500m"),
            never("it needs requests.cpu=8, and the quota team-a has 7500m in all")
        );
        assert_eq!(of("pods=1", "pods=0", "pods=0"), never("it needs pods=1, and the quota team-a has 0 in all"));
        assert_eq!(of("pods=x", "pods=0", "pods=0"), Some(Exceeded::Now), "what can't be compared may fit later");
    }

    #[test]
    fn other_messages_are_of_no_quota() {
        for message in [
            "pods \"a\" is forbidden: failed quota: q: must specify limits.cpu for: driver",
            "pods \"a\" is forbidden: maximum cpu usage per Pod is 2, but limit is 4",
            "admission webhook \"w\" denied the request: exceeded quota: q, requested: a=1, used: a=1, limited: a=1",
        ] {
            assert_eq!(exceeded(message), None, "{message}");
        }
    }
}
