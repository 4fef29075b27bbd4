use proptest::prelude::*;
use uuid::Uuid;

use super::{DriverNames, NameEntropy, app_name_label};

const NOW_MS: i64 = 1_795_235_752_539;
const ENTROPY: NameEntropy = NameEntropy {
    app_id: Uuid::from_u128(0x0123_4567_89ab_4def_8123_4567_89ab_cdef),
    local_dir: Uuid::from_u128(2),
    resource_prefix: [0x1a, 0x02, 0xff],
    config_map: [0xb0, 0, 1],
    driver_service: [0xc0, 0, 1],
};

fn names(app_name: &str) -> DriverNames {
    DriverNames::generate(app_name, None, NOW_MS, &ENTROPY)
}

#[test]
fn every_name_has_sparks_pattern() {
    let names = names("Spark Pi");
    assert_eq!(names.app_id, "spark-0123456789ab4def8123456789abcdef");
    assert_eq!(names.resource_prefix, "spark-pi-1a02ffa1fc63aa5b");
    assert_eq!(names.driver_pod, "spark-pi-1a02ffa1fc63aa5b-driver");
    assert_eq!(names.driver_service, "spark-pi-1a02ffa1fc63aa5b-driver-svc");
    assert_eq!(names.config_map, "spark-drv-b00001a1fc63aa5b-conf-map");
}

#[test]
fn application_names_are_sanitised_as_spark_does() {
    let id = "1a02ffa1fc63aa5b";
    let cases = [
        ("My App.Name_1", format!("my-app-name-1-{id}"), "my-app-name-1"),
        ("9lives", format!("xlives-{id}"), "9lives"),
        ("9-9", format!("x-9-{id}"), "9-9"),
        ("ÜBER", format!("ber-{id}"), "ber"),
        ("日本", format!("x{}", &id[1..]), ""),
        ("", format!("x{}", &id[1..]), ""),
        ("  a  ", format!("a-{id}"), "a"),
    ];
    for (name, prefix, label) in cases {
        assert_eq!(names(name).resource_prefix, prefix, "{name}");
        assert_eq!(app_name_label(name), label, "{name}");
    }
}

#[test]
fn a_label_is_cut_before_hyphens_at_its_ends_are_removed() {
    let name = format!("-{}-c", "b".repeat(61));
    assert_eq!(app_name_label(&name), "b".repeat(61));
}

#[test]
fn a_service_name_over_63_characters_is_replaced_by_a_short_one() {
    let prefix_of_52 = "a".repeat(35);
    assert_eq!(names(&prefix_of_52).driver_service.len(), 63);
    let long = names(&"a".repeat(36));
    assert_eq!(long.driver_service, "spark-c00001a1fc63aa5b-driver-svc");
    assert_eq!(long.driver_pod, format!("{}-1a02ffa1fc63aa5b-driver", "a".repeat(36)));
}

#[test]
fn a_configured_pod_name_changes_only_the_pod() {
    let named = DriverNames::generate("Spark Pi", Some("my-driver"), NOW_MS, &ENTROPY);
    assert_eq!(named, DriverNames { driver_pod: "my-driver".to_owned(), ..names("Spark Pi") });
}

const AGAIN: NameEntropy = NameEntropy {
    app_id: Uuid::from_u128(0xf123_4567_89ab_4def_8123_4567_89ab_cdef),
    local_dir: Uuid::from_u128(3),
    resource_prefix: [0x2b, 0x02, 0xff],
    config_map: [0xb1, 0, 1],
    driver_service: [0xc1, 0, 1],
};

#[test]
fn another_attempt_has_the_names_of_a_new_submission() {
    let long = "a".repeat(36);
    for app_name in ["Spark Pi", "9lives", "9-9", "日本", "", long.as_str()] {
        let anew = names(app_name).drawn_anew(NOW_MS + 1, &AGAIN);
        assert_eq!(anew, DriverNames::generate(app_name, None, NOW_MS + 1, &AGAIN), "{app_name}");
    }
    let fixed = DriverNames::generate("Spark Pi", Some("my-driver"), NOW_MS, &ENTROPY);
    assert_eq!(fixed.drawn_anew(NOW_MS, &AGAIN), DriverNames::generate("Spark Pi", Some("my-driver"), NOW_MS, &AGAIN));
}

proptest! {
    #[test]
    fn any_application_name_gives_names_that_kubernetes_accepts(app_name in ".{0,120}") {
        let names = names(&app_name);
        let mut prefix = names.resource_prefix.chars();
        prop_assert!(prefix.next().is_some_and(|c| c.is_ascii_lowercase()), "{}", names.resource_prefix);
        prop_assert!(prefix.all(|c| matches!(c, 'a'..='z' | '0'..='9' | '-')), "{}", names.resource_prefix);
        prop_assert!(names.driver_service.len() <= 63);
        prop_assert!(app_name_label(&app_name).len() <= 63);
    }
}
