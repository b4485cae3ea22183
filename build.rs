//! Links the program to a fixed address where the GNU linker makes it: else the loader rewrites
//! some thirty pages at each start, which takes longer than all that most stops of a session do.

#![expect(clippy::disallowed_methods, reason = "cargo names the target in the environment")]

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let named = |name: &str| std::env::var(format!("CARGO_CFG_TARGET_{name}")).unwrap_or_default();
    let is_static = named("FEATURE").split(',').any(|feature| feature == "crt-static");
    if named("OS") == "linux" && named("ENV") == "gnu" && !is_static {
        println!("cargo::rustc-link-arg-bin=crew=-no-pie");
    }
}
