//! Tells the build script of `shieling` where these sources are. It builds the program from them, whether they come from
//! this repository or from a registry.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let directory = std::env::var("CARGO_MANIFEST_DIR").expect("cargo sets CARGO_MANIFEST_DIR");
    println!("cargo::metadata=sources={directory}");
}
