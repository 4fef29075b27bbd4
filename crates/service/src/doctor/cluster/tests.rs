use super::*;
use crate::doctor::Level;

#[test]
fn a_version_outside_of_the_supported_range_is_found() {
    for (release, level) in [
        (Some((1, 32)), Level::Failure),
        (Some((1, 33)), Level::Ok),
        (Some((1, 37)), Level::Ok),
        (Some((1, 38)), Level::Warning),
        (Some((2, 0)), Level::Warning),
        (None, Level::Warning),
    ] {
        let server = ApiServer { version: "v".to_owned(), release, clock: None };
        assert_eq!(version(&server).level, level, "{release:?}");
    }
}

#[test]
fn a_quota_that_is_used_up_is_found() {
    let level = |used: &str, hard: &str| {
        let used = QuotaUse {
            quota: "q".to_owned(),
            resource: "pods".to_owned(),
            used: used.to_owned(),
            hard: hard.to_owned(),
        };
        quota("spark", &[used]).level
    };
    assert_eq!(level("9", "10"), Level::Ok);
    assert_eq!(level("10", "10"), Level::Warning);
    assert_eq!(level("11", "10"), Level::Warning);
    assert_eq!(level("4Gi", "4Gi"), Level::Warning);
    assert_eq!(level("3Gi", "4Gi"), Level::Ok);
}
