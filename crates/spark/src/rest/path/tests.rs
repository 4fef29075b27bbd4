use super::*;

fn id_of(path: &str, version: SparkVersion) -> Option<String> {
    match parse_path(path, version) {
        Ok(Target::Action { action: Action::Status, id }) => id,
        other => panic!("{path}: {other:?}"),
    }
}

#[test]
fn the_id_is_the_first_segment_after_the_action() {
    for version in [SparkVersion::V3_5, SparkVersion::V4_3] {
        for path in ["x", "x/", "x/y", "x;a=b", "./x", "y/../x", "%78"] {
            assert_eq!(id_of(&format!("/v1/submissions/status/{path}"), version).as_deref(), Some("x"), "{path}");
        }
        for path in ["", "/", ";x", "/.", "/x/.."] {
            assert_eq!(id_of(&format!("/v1/submissions/status{path}"), version), None, "{path}");
        }
        assert_eq!(id_of("/v1;a/submissions/status/a%20%C3%A9", version).as_deref(), Some("a é"));
    }
}

#[test]
fn jetty_12_refuses_ambiguous_paths() {
    for path in ["a%2Fb", "a%25", "a%5Cb", "a%ff", "a|b", "a%0Ab", "a%7F", "%2e%2e/x", ";/x", "/x", "..;/x"] {
        let path = format!("/v1/submissions/status/{path}");
        assert!(matches!(parse_path(&path, SparkVersion::V4_2), Err(BadPath::Ambiguous(_))), "{path}");
    }
    assert_eq!(id_of("/v1/submissions/status/a%2Fb", SparkVersion::V4_1).as_deref(), Some("a"));
    assert_eq!(id_of("/v1/submissions/status/a%2541", SparkVersion::V4_1).as_deref(), Some("a%41"));
    assert_eq!(id_of("/v1/submissions/status/a%ff", SparkVersion::V4_1).as_deref(), Some("aÿ"));
    assert!(matches!(parse_path("//v1", SparkVersion::V4_0), Err(BadPath::Ambiguous(_))));
    assert!(parse_path("//v1", SparkVersion::V3_5).is_ok());
}

#[test]
fn every_version_refuses_a_malformed_path() {
    for path in ["", "*", "x", "/..", "/a/../..", "/%", "/%4", "/%zz", "/a%00", "/%é"] {
        for version in [SparkVersion::V3_5, SparkVersion::V4_1, SparkVersion::V4_3] {
            assert_eq!(parse_path(path, version), Err(BadPath::Malformed), "{path}");
        }
    }
}

proptest::proptest! {
    #[test]
    fn any_path_has_an_answer(path in "/[a-z%./;0-9é]{0,40}") {
        for version in [SparkVersion::V3_5, SparkVersion::V4_0, SparkVersion::V4_3] {
            if let Ok(Target::Action { id: Some(id), .. }) = parse_path(&path, version) {
                proptest::prop_assert!(!id.contains(['/', '\0']));
            }
        }
    }
}
