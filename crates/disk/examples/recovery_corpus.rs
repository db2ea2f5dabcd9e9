//! Writes the first corpus of the fuzz target `disk_recovery`: pieces of real volumes.
//!
//!     cargo run -p disk --features fuzzing --example recovery_corpus -- fuzz/corpus/disk_recovery

use std::path::Path;

fn main() -> std::io::Result<()> {
    let name = std::env::args().nth(1).unwrap_or_else(|| "fuzz/corpus/disk_recovery".to_owned());
    let folder = Path::new(&name);
    std::fs::create_dir_all(folder)?;
    for (number, seed) in disk::fuzz::seeds().iter().enumerate() {
        std::fs::write(folder.join(format!("seed-{number:04}")), seed)?;
    }
    Ok(())
}
