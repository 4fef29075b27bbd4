//! From the text of a request to the text of its driver's objects, as both are stored: without a database or a cluster.

use allocation_counter::measure;
use sparkgate::{app::render::driver, cluster::Manifest, spark::rest::parse_create};
use sparkgate_testing::request::request;

use crate::{
    expected::{compare, median},
    world,
};

#[test]
fn cost_of_rendering_is_as_expected() {
    let (settings, body) = (world::spark(), request(1, "default"));
    let once = || {
        measure(|| {
            let (request, _) = parse_create(&body, settings.version).unwrap();
            drop(std::hint::black_box(Manifest::text_of(&driver(request, &settings).unwrap(), None::<&()>).unwrap()));
        })
    };
    // The first call fills the caches.
    once();
    compare("render", median(vec![once(), once(), once()]), "");
}
