//! How much memory follows one that was not enough.

use sparkgate_store::FullMemory;

/// The memory of a pod in MiB.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Memory {
    /// The heap of its JVM.
    pub(crate) heap: i64,
    /// Everything else in its container.
    pub(crate) rest: i64,
}

impl Memory {
    pub(crate) fn total(self) -> i64 {
        self.heap.saturating_add(self.rest)
    }

    /// Returns the memory after the given limits were reached, one after the other, with the container at most at `max`.
    ///
    /// A container that is full gets larger, and the heap in it stays as it is: its memory outside the heap was not enough. A heap that is
    /// full gets larger together with its container.
    pub(crate) fn grown(self, full: impl IntoIterator<Item = FullMemory>, factor: f64, max: Option<i64>) -> Self {
        let max = max.unwrap_or(i64::MAX);
        full.into_iter().fold(self, |Self { heap, rest }, full| match full {
            FullMemory::Container => {
                let total = times(heap.saturating_add(rest), factor).min(max);
                Self { heap, rest: total.saturating_sub(heap).max(rest) }
            }
            FullMemory::Heap => Self { heap: times(heap, factor).min(max.saturating_sub(rest)).max(heap), rest },
        })
    }
}

/// Returns a multiple in whole MiB, rounded up. A cast saturates.
fn times(mib: i64, factor: f64) -> i64 {
    (mib as f64 * factor).ceil() as i64
}

#[cfg(test)]
mod tests {
    use FullMemory::{Container, Heap};

    use super::*;

    const DRIVER: Memory = Memory { heap: 1024, rest: 384 };

    #[test]
    fn a_full_container_grows_outside_its_heap() {
        let grown = DRIVER.grown([Container], 1.5, None);
        assert_eq!(grown, Memory { heap: 1024, rest: 1088 });
        assert_eq!(grown.total(), 2112);
        assert_eq!(DRIVER.grown([Container, Container], 1.5, None).total(), 3168);
    }

    #[test]
    fn a_full_heap_grows_with_its_container() {
        assert_eq!(DRIVER.grown([Heap], 1.5, None), Memory { heap: 1536, rest: 384 });
        assert_eq!(DRIVER.grown([Heap, Container], 2.0, None), Memory { heap: 2048, rest: 2816 });
    }

    #[test]
    fn nothing_grows_beyond_the_maximum_and_nothing_shrinks() {
        assert_eq!(DRIVER.grown([Heap], 4.0, Some(2048)), Memory { heap: 1664, rest: 384 });
        assert_eq!(DRIVER.grown([Container], 4.0, Some(2048)).total(), 2048);
        for max in [1408, 1000] {
            assert_eq!(DRIVER.grown([Heap, Container], 2.0, Some(max)), DRIVER);
        }
        assert_eq!(DRIVER.grown([Heap], 1e300, None).total(), i64::MAX);
    }
}
