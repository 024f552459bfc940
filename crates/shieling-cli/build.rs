//! Links the program `shieling` to a fixed address, where its platform can: it has some 40,000 pointers that would
//! otherwise have to be moved at each start.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let of = |name| std::env::var(format!("CARGO_CFG_TARGET_{name}")).unwrap_or_default();
    // With a static C library the two do not go together.
    let is_static = of("FEATURE").split(',').any(|feature| feature == "crt-static");
    if of("OS") == "linux" && of("ENV") == "gnu" && !is_static {
        println!("cargo::rustc-link-arg-bins=-no-pie");
    }
}
