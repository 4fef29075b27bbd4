//! A new migration must be compiled in.

fn main() {
    println!("cargo:rerun-if-changed=../../migrations");
}
