//! What applications reserve.

use serde_json::json;
use sparkgate_spark::Quantity;

use super::{Driver, template};
use crate::{ApplicationSize, Executors, UnknownSize};

fn quantity(text: &str) -> Quantity {
    Quantity::parse(text).unwrap()
}

fn size(driver: &Driver) -> Result<ApplicationSize, UnknownSize> {
    driver.judged(ApplicationSize::of)
}

#[test]
fn an_application_reserves_what_its_driver_and_its_executors_request() {
    let properties = [
        ("spark.driver.cores", "2"),
        ("spark.driver.memory", "4g"),
        ("spark.executor.cores", "4"),
        ("spark.executor.memory", "10g"),
        ("spark.executor.instances", "8"),
        ("spark.kubernetes.executor.request.cores", "3500m"),
        ("spark.kubernetes.executor.limit.cores", "6"),
        ("spark.executor.resource.gpu.amount", "1"),
        ("spark.executor.resource.gpu.vendor", "nvidia.com"),
    ];
    let size = size(&Driver::new(&properties)).unwrap();
    assert_eq!((size.driver["cpu"], size.driver["memory"]), (quantity("2"), quantity("4505Mi")));
    assert_eq!((size.executor["cpu"], size.executor["memory"]), (quantity("3500m"), quantity("11Gi")));
    assert_eq!(size.executor["nvidia.com/gpu"], quantity("1"), "a limit without a request is one");
    assert_eq!((size.initial_executors, size.executors), (8, Executors::AtMost(8)));
}

#[test]
fn sidecars_and_overheads_of_templates_count() {
    let side = json!({ "name": "side", "image": "a", "resources": { "requests": { "cpu": "250m", "memory": "1Gi" } } });
    let spec = json!({ "containers": [{ "name": "main", "image": "b" }, side], "overhead": { "cpu": "50m" } });
    let driver = Driver::build(&[("spark.executor.cores", "1")], None, Some(template(spec)));
    let size = size(&driver).unwrap();
    assert_eq!((size.executor["cpu"], size.executor["memory"]), (quantity("1300m"), quantity("2432Mi")));
}

#[test]
fn dynamic_allocation_has_a_first_and_a_largest_number_of_executors() {
    let count = |properties: &[(&str, &str)]| {
        let size = size(&Driver::new(properties))?;
        Ok((size.initial_executors, size.executors))
    };
    let on = ("spark.dynamicAllocation.enabled", "true");
    let (first, least) =
        (("spark.dynamicAllocation.initialExecutors", "3"), ("spark.dynamicAllocation.minExecutors", "2"));
    let most = ("spark.dynamicAllocation.maxExecutors", "40");
    assert_eq!(count(&[]), Ok((2, Executors::AtMost(2))));
    assert_eq!(count(&[on, first, least, most]), Ok((3, Executors::AtMost(40))));
    assert_eq!(count(&[on, least, most, ("spark.executor.instances", "5")]), Ok((5, Executors::AtMost(40))));
    assert_eq!(count(&[on]), Ok((0, Executors::Unbounded(most.0))));
    let unreadable = |key: &str| {
        let unknown = UnknownSize { property: key.to_owned(), reason: "it is not a whole number".to_owned() };
        Err::<(u64, Executors), _>(unknown)
    };
    assert_eq!(count(&[on, most, (first.0, "few")]), unreadable(first.0));
}
