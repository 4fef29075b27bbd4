//! Each attempt has names of its own, represented by one number.

/// The most attempts that a submission has.
pub(crate) const MOST_ATTEMPTS: usize = 4;

pub(crate) fn name_of(submission: usize, attempt: i32) -> usize {
    submission * MOST_ATTEMPTS + attempt as usize - 1
}

pub(crate) fn submission_of(name: usize) -> usize {
    name / MOST_ATTEMPTS
}

pub(crate) fn attempt_of(name: usize) -> i32 {
    (name % MOST_ATTEMPTS) as i32 + 1
}
