//! The objects of an example, as a file to read.

use super::{EXAMPLE, generated, to_yaml};

#[test]
fn the_objects_of_the_example_are_those_of_its_file() {
    let text = to_yaml(&generated(EXAMPLE).unwrap());
    if std::env::var_os("SPARKGATE_WRITE_ADMISSION").is_some() {
        std::fs::write(concat!(env!("CARGO_MANIFEST_DIR"), "/src/tests/objects.yaml"), &text).unwrap();
    }
    let recorded = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/src/tests/objects.yaml")).unwrap();
    assert_eq!(text, recorded, "if this is meant, run this test with SPARKGATE_WRITE_ADMISSION=1");
}
