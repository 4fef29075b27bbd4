//! When a submission will be admitted, from the last admissions of its tenant in its queue.

#[cfg(test)]
mod replay;

/// The times between admissions of a tenant in a queue, while submissions of it waited. The times in which none waited say nothing about how
/// fast the queue admits.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct History {
    /// How many there were.
    pub admissions: u32,
    /// Their sum in seconds, and the time since the last one.
    pub seconds: f64,
    /// The standard deviation of the time between two of them, in seconds.
    pub deviation: f64,
    /// How long ago the first one was, in seconds.
    pub age: f64,
}

impl History {
    /// The least number of admissions from which anything follows.
    const LEAST: u32 = 5;

    /// Estimates in how many seconds a submission with so many ahead of it is admitted, and the standard error of that. `None` if the
    /// history is too short.
    pub fn estimate(&self, ahead: u32) -> Option<(f64, f64)> {
        (self.admissions >= Self::LEAST).then(|| {
            let (steps, count) = (f64::from(ahead) + 1.0, f64::from(self.admissions));
            // The times that are to come differ from their mean, and the mean is that of a sample.
            let error = self.deviation * (steps + steps * steps / count).sqrt();
            (steps * self.seconds / count, error)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_estimate_needs_a_history() {
        let history = History { admissions: 10, seconds: 100.0, deviation: 3.0, age: 500.0 };
        let rounded = |ahead| history.estimate(ahead).map(|(seconds, error)| (seconds.round(), error.round()));
        assert_eq!((rounded(0), rounded(9)), (Some((10.0, 3.0)), Some((100.0, 13.0))));
        assert_eq!(History { admissions: 4, ..history }.estimate(0), None);
        assert_eq!(History::default().estimate(0), None);
    }
}
