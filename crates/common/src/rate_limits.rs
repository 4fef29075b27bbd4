//! Fair shares of the front door: how often, and with how many bytes, each principal may send requests. The limits are those of
//! this replica. The algorithm is GCRA: a quiet caller may send one period's amount at once.

use std::{
    collections::HashMap,
    fmt,
    hash::Hash,
    net::{IpAddr, Ipv6Addr},
    num::NonZeroU32,
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use governor::{Quota, RateLimiter, clock::DefaultClock, state::keyed::DefaultKeyedStateStore};

use sparkgate_access::{Rate, Rates};

/// How many keys may be idle before they are forgotten.
const IDLE: usize = 10_000;
/// The unit in which bytes are counted, so that a limit of gigabytes fits into 32 bits.
const KIB: u64 = 1024;

/// Requests for the files of one submission in a second, and at once: a thousand executors fetch two files each.
const FETCHES: NonZeroU32 = NonZeroU32::new(100).unwrap();
const FETCHES_AT_ONCE: NonZeroU32 = NonZeroU32::new(2000).unwrap();

/// How often idle keys are forgotten at most: it takes as long as there are keys.
const SWEEP: Duration = Duration::from_secs(1);

/// A limit by key.
struct Limiter<K: Clone + Eq + Hash> {
    rates: RateLimiter<K, DefaultKeyedStateStore<K>, DefaultClock>,
    swept: Mutex<Instant>,
}

impl<K: Clone + Eq + Hash> Limiter<K> {
    fn new(quota: Quota) -> Self {
        Self { rates: RateLimiter::keyed(quota), swept: Mutex::new(Instant::now()) }
    }

    /// Forgets idle keys, if there are many.
    fn sweep(&self) {
        if self.rates.len() > IDLE
            && let Ok(mut swept) = self.swept.try_lock()
            && swept.elapsed() >= SWEEP
        {
            self.rates.retain_recent();
            *swept = Instant::now();
        }
    }
}

/// What failed logins are counted by: an address, or the network of 64 bits that one host has in IPv6.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Network(IpAddr);

impl From<IpAddr> for Network {
    fn from(address: IpAddr) -> Self {
        match address.to_canonical() {
            IpAddr::V4(address) => Self(address.into()),
            IpAddr::V6(address) => Self(Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into()),
        }
    }
}

/// The failed logins of networks, and until when each that had too many is refused.
struct FailedLogins {
    counts: Limiter<Network>,
    refused: Mutex<HashMap<Network, Instant>>,
}

impl FailedLogins {
    fn count(&self, network: Network) -> Result<(), Exceeded> {
        let counted = within(&self.counts, &network, 1, FAILED_LOGINS);
        if let Err(Exceeded { retry_after: Some(time), .. }) = &counted {
            let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
            if refused.len() >= IDLE {
                refused.retain(|_, until| *until > Instant::now());
            }
            if refused.len() < IDLE {
                refused.insert(network, Instant::now() + *time);
            }
        }
        counted
    }

    /// Returns whether another failed login would be within the limit, without counting one.
    fn check(&self, network: Network) -> Result<(), Exceeded> {
        let refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        let left = refused.get(&network).and_then(|until| until.checked_duration_since(Instant::now()));
        match left.filter(|left| !left.is_zero()) {
            Some(left) => Err(Exceeded { limit: FAILED_LOGINS, tenant: None, retry_after: Some(left) }),
            None => Ok(()),
        }
    }
}

const FAILED_LOGINS: &str = "failedLogins";

/// A limit that a request exceeds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exceeded {
    /// The name of the limit in the access file.
    pub limit: &'static str,
    /// The tenant whose limit it is; `None` for a limit of principals or addresses.
    pub tenant: Option<String>,
    /// When the same request would be within it; `None` if it never is.
    pub retry_after: Option<Duration>,
}

impl fmt::Display for Exceeded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.tenant {
            Some(tenant) => write!(f, "the limit `{}` of tenant {tenant} is exceeded", self.limit),
            None => write!(f, "the limit `{}` of the access file is exceeded", self.limit),
        }
    }
}

/// The limits of all callers.
pub struct RateLimits {
    writes: Limiter<String>,
    reads: Limiter<String>,
    kibibytes: Limiter<String>,
    failed_logins: FailedLogins,
}

impl RateLimits {
    pub fn new(rates: &Rates) -> Self {
        Self {
            writes: limiter(rates.writes, 1),
            reads: limiter(rates.reads, 1),
            kibibytes: limiter(rates.bytes, KIB),
            failed_logins: FailedLogins { counts: limiter(rates.failed_logins, 1), refused: Mutex::default() },
        }
    }

    /// Counts a request of a principal, with the announced bytes of its body.
    pub fn count(&self, subject: &str, is_read: bool, bytes: u64) -> Result<(), Exceeded> {
        let subject = subject.to_owned();
        let (requests, limit) = if is_read { (&self.reads, "reads") } else { (&self.writes, "writes") };
        within(requests, &subject, 1, limit)?;
        self.count_bytes(&subject, bytes)
    }

    /// Counts bytes of a principal, rounded up to KiB.
    pub fn count_bytes(&self, subject: &str, bytes: u64) -> Result<(), Exceeded> {
        match NonZeroU32::new(u32::try_from(bytes.div_ceil(KIB)).unwrap_or(u32::MAX)) {
            Some(kibibytes) => within(&self.kibibytes, &subject.to_owned(), kibibytes.get(), "bytes"),
            None => Ok(()),
        }
    }

    /// Counts a failed login from an address, and returns whether there were too many.
    pub fn count_failed_login(&self, address: IpAddr) -> Result<(), Exceeded> {
        self.failed_logins.count(address.into())
    }

    /// Returns whether an address may try another login, without counting one.
    pub fn check_logins(&self, address: IpAddr) -> Result<(), Exceeded> {
        self.failed_logins.check(address.into())
    }
}

/// How often the files of one submission may be fetched. More wait: a driver that fails for want of a file can't be told to try again.
pub struct FetchLimits(Limiter<String>);

impl Default for FetchLimits {
    fn default() -> Self {
        Self(Limiter::new(Quota::per_second(FETCHES).allow_burst(FETCHES_AT_ONCE)))
    }
}

impl FetchLimits {
    /// Waits until another request for a file of this submission is due.
    pub async fn wait(&self, submission: &str) {
        self.0.sweep();
        self.0.rates.until_key_ready(&submission.to_owned()).await;
    }
}

fn limiter<K: Clone + Eq + Hash>(rate: Rate, unit: u64) -> Limiter<K> {
    let amount = u32::try_from(rate.amount.get().div_ceil(unit)).unwrap_or(u32::MAX);
    let amount = NonZeroU32::new(amount).unwrap_or(NonZeroU32::MIN);
    let each = (rate.period / amount.get()).max(Duration::from_nanos(1));
    let quota = Quota::with_period(each).unwrap_or_else(|| Quota::per_second(amount));
    Limiter::new(quota.allow_burst(amount))
}

fn within<K: Clone + Eq + Hash>(
    limiter: &Limiter<K>,
    key: &K,
    count: u32,
    limit: &'static str,
) -> Result<(), Exceeded> {
    limiter.sweep();
    let count = NonZeroU32::new(count).unwrap_or(NonZeroU32::MIN);
    match limiter.rates.check_key_n(key, count) {
        Ok(Ok(())) => Ok(()),
        Ok(Err(until)) => {
            let retry_after = until.wait_time_from(governor::clock::Clock::now(limiter.rates.clock()));
            Err(Exceeded { limit, tenant: None, retry_after: Some(retry_after) })
        }
        Err(_) => Err(Exceeded { limit, tenant: None, retry_after: None }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits() -> RateLimits {
        let rates = Rates {
            writes: Rate::parse("2/h").unwrap(),
            reads: Rate::parse("3/h").unwrap(),
            bytes: Rate::parse_bytes("8KiB/h").unwrap(),
            failed_logins: Rate::parse("1/h").unwrap(),
        };
        RateLimits::new(&rates)
    }

    #[test]
    fn each_principal_has_its_own_limits() {
        let limits = limits();
        for subject in ["corp:alice", "corp:bob"] {
            assert!((0..2).all(|_| limits.count(subject, false, 0).is_ok()));
            let exceeded = limits.count(subject, false, 0).unwrap_err();
            assert_eq!(exceeded.limit, "writes");
            assert!(exceeded.retry_after.is_some_and(|time| !time.is_zero()));
            assert!((0..3).all(|_| limits.count(subject, true, 0).is_ok()));
            assert_eq!(limits.count(subject, true, 0).unwrap_err().limit, "reads");
        }
    }

    #[test]
    fn bytes_are_counted_and_more_than_the_limit_at_once_is_never_within_it() {
        let limits = limits();
        assert!(limits.count("corp:alice", true, 8 << 10).is_ok());
        assert_eq!(limits.count("corp:alice", true, 1).unwrap_err().limit, "bytes");
        let never = Exceeded { limit: "bytes", tenant: None, retry_after: None };
        assert_eq!(limits.count("corp:bob", true, 9 << 10), Err(never));
    }

    #[test]
    fn failed_logins_count_by_address() {
        let limits = limits();
        let address = |text: &str| text.parse::<IpAddr>().unwrap();
        assert!(limits.count_failed_login(address("10.0.0.1")).is_ok());
        assert_eq!(limits.count_failed_login(address("10.0.0.1")).unwrap_err().limit, "failedLogins");
        assert!(limits.count_failed_login(address("10.0.0.2")).is_ok());
    }

    #[test]
    fn an_address_with_too_many_failed_logins_is_known_before_the_next_one() {
        let limits = limits();
        let check = |text: &str| limits.check_logins(text.parse().unwrap()).map_err(|exceeded| exceeded.limit);
        let count = |text: &str| limits.count_failed_login(text.parse().unwrap()).is_ok();
        assert!(check("2001:db8::1").is_ok() && count("2001:db8::1") && check("2001:db8::1").is_ok());
        assert!(!count("2001:db8::ffff:2"), "a host of IPv6 has as many addresses as it wants");
        assert_eq!(check("2001:db8::3"), Err("failedLogins"));
        assert!(check("2001:db8:0:1::1").is_ok());
        assert!(count("10.0.0.1") && !count("::ffff:10.0.0.1") && check("10.0.0.1").is_err());
    }
}
