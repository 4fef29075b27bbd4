//! Many measurements of one thing.

/// Measurements in the order in which they were made.
#[derive(Debug, Clone, Default)]
pub(crate) struct Samples(Vec<f64>);

impl Samples {
    /// Returns the quantile `share` (0 to 1) by nearest rank; 0 if there are no values.
    pub(crate) fn quantile(&self, share: f64) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a rank is small and positive")]
        let rank = (share * sorted.len() as f64).ceil() as usize;
        sorted.get(rank.clamp(1, sorted.len().max(1)) - 1).copied().unwrap_or_default()
    }

    pub(crate) fn min(&self) -> f64 {
        self.quantile(0.0)
    }

    pub(crate) fn median(&self) -> f64 {
        self.quantile(0.5)
    }

    /// Returns the mean; 0 if there are no values.
    pub(crate) fn mean(&self) -> f64 {
        self.0.iter().sum::<f64>() / self.0.len().max(1) as f64
    }

    pub(crate) fn max(&self) -> f64 {
        self.quantile(1.0)
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn values(&self) -> &[f64] {
        &self.0
    }

    pub(crate) fn push(&mut self, value: f64) {
        self.0.push(value);
    }
}

impl FromIterator<f64> for Samples {
    fn from_iter<I: IntoIterator<Item = f64>>(values: I) -> Self {
        Self(values.into_iter().collect())
    }
}

impl Extend<f64> for Samples {
    fn extend<I: IntoIterator<Item = f64>>(&mut self, values: I) {
        self.0.extend(values);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_values_that_were_measured() {
        let samples: Samples = [3.0, 1.0, 2.0, 4.0].into_iter().collect();
        assert_eq!((samples.min(), samples.median(), samples.quantile(0.99), samples.max()), (1.0, 2.0, 4.0, 4.0));
        assert_eq!(Samples::default().median(), 0.0);
    }
}
