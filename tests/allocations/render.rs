//! From the text of a request to the objects of its driver as JSON, without a database or a cluster.

use allocation_counter::measure;
use sparkgate::app::render::render;

use crate::{
    expected::{compare, median},
    request::request,
    world,
};

#[test]
fn rendering() {
    let (settings, body) = (world::spark(), request(1, "default"));
    let once = || measure(|| drop(std::hint::black_box(render(&body, &settings).unwrap().to_string())));
    // The first one fills what is made once and kept.
    once();
    compare("render", median(vec![once(), once(), once()]), "");
}
