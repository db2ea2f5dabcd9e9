//! Declares `cfg(loom)` to the compiler: tests/loom.rs is built with it.

fn main() {
    println!("cargo::rustc-check-cfg=cfg(loom)");
    println!("cargo::rerun-if-changed=build.rs");
}
