//! How slow a client may be that holds a place of a transfer.

use std::time::Duration;

use tokio::time::{Instant, timeout};

/// The longest time of one transfer, however fast it is.
const LONGEST: Duration = Duration::from_secs(6 * 3600);

/// The slowest transfer that is permitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pace {
    /// How long nothing may move. What moves faster than this pace earns no more than that.
    pub window: Duration,
    pub bytes_per_second: u32,
}

impl Pace {
    /// 64 KiB a second, after half a minute.
    pub const SLOWEST: Self = Self { window: Duration::from_secs(30), bytes_per_second: 64 << 10 };
}

/// The client moves less than its pace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TooSlow;

/// A transfer, and how long its client may still be waited for. The gateway's own time doesn't count.
#[derive(Debug)]
pub(super) struct Progress {
    pace: Pace,
    left: Duration,
    end: Instant,
}

impl Progress {
    pub(super) fn of(pace: Pace) -> Self {
        Self { pace, left: pace.window, end: Instant::now() + LONGEST }
    }

    /// Waits for the client.
    pub(super) async fn wait<T>(&mut self, client: impl Future<Output = T>) -> Result<T, TooSlow> {
        let begun = Instant::now();
        let limit = self.left.min(self.end.saturating_duration_since(begun));
        let result = timeout(limit, client).await;
        self.left = self.left.saturating_sub(begun.elapsed());
        result.map_err(|_| TooSlow)
    }

    /// Counts bytes that the client has sent or taken.
    pub(super) fn moved(&mut self, bytes: usize) {
        let earned = Duration::from_secs_f64(bytes as f64 / f64::from(self.pace.bytes_per_second.max(1)));
        self.left = (self.left + earned).min(self.pace.window);
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use tokio::time::sleep;

    use super::*;

    const PACE: Pace = Pace { window: Duration::from_secs(30), bytes_per_second: 1000 };

    /// Moves so many bytes each time, after a pause, and returns how long it was waited for.
    async fn transfer(bytes: usize, pause: u64) -> u64 {
        let (mut progress, begun) = (Progress::of(PACE), Instant::now());
        while begun.elapsed() < Duration::from_secs(24 * 3600)
            && progress.wait(sleep(Duration::from_secs(pause))).await.is_ok()
        {
            progress.moved(bytes);
        }
        begun.elapsed().as_secs()
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_is_waited_for_while_it_keeps_the_pace() {
        assert_eq!(transfer(1, 50).await, 30, "a drop each fifty seconds");
        assert!((30..60).contains(&transfer(1, 1).await), "a drop each second");
        assert_eq!(transfer(2000, 1).await, LONGEST.as_secs(), "twice the pace, for as long as a transfer may take");
        let (mut progress, begun) = (Progress::of(PACE), Instant::now());
        progress.moved(1_000_000_000);
        assert_eq!(progress.wait(pending::<()>()).await, Err(TooSlow));
        assert_eq!(begun.elapsed().as_secs(), 30, "a fast begin earns no silence");
    }
}
