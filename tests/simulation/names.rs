//! Each attempt has names of its own, represented by one number. So has every other pod: each submission's namespace has one name
//! more, under which other users create pods.

/// The most attempts that a submission has.
pub(crate) const MOST_ATTEMPTS: usize = 4;
/// The names for each submission: those of its attempts, and one that belongs to none.
pub(crate) const NAMES: usize = MOST_ATTEMPTS + 1;

pub(crate) fn name_of(submission: usize, attempt: i32) -> usize {
    submission * NAMES + attempt as usize - 1
}

/// Returns a name in the namespace of a submission that no attempt has.
pub(crate) fn free_name(submission: usize) -> usize {
    submission * NAMES + MOST_ATTEMPTS
}

pub(crate) fn submission_of(name: usize) -> usize {
    name / NAMES
}

pub(crate) fn attempt_of(name: usize) -> i32 {
    (name % NAMES) as i32 + 1
}
