//! Warnings about a configuration that asks for what its machine has not: memory, directories.

use config::sizing::Machine;
use config::{Config, Diagnostic};

/// Everything that is missing on `machine`.
pub(crate) fn unmet(config: &Config, machine: &Machine) -> Vec<Diagnostic> {
    let mut found: Vec<_> = too_much_memory(config, machine).into_iter().collect();
    for folder in &config.folders {
        let why = match std::fs::metadata(&folder.path) {
            Ok(meta) if meta.is_dir() => continue,
            Ok(_) => "it is not a directory".to_owned(),
            // Its files may be another user's, or only the application's.
            Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => continue,
            Err(error) => error.to_string(),
        };
        let message = format!("`{}`: {}: {why}", folder.setting, folder.path.display());
        found.push(folder.place.warning(message));
    }
    found
}

fn too_much_memory(config: &Config, machine: &Machine) -> Option<Diagnostic> {
    let (wanted, there) = (machine.memory_bytes(config.memory.size), machine.memory_bytes);
    (wanted > there).then(|| {
        let (wanted, there) = (mebibytes(wanted), mebibytes(there));
        let message = format!("memory: {wanted} are more than the {there} that there are");
        let mut told = config.memory.place.warning(message);
        told.help = Some(
            "this machine, or the control group of the daemon, has no more: the kernel would end \
             the daemon once its cache is that large; without the setting it takes half"
                .to_owned(),
        );
        told
    })
}

/// A size for people.
pub(crate) fn mebibytes(bytes: u64) -> String {
    format!("{} MiB", bytes >> 20)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(text: &str) -> Vec<String> {
        let rest = "[[origin]]\nname = \"app\"\nservers = \"http://app\"\n[[site]]\nhost = \"*\"\n\
                    origin = \"app\"\n";
        let (config, _) = config::load_str(&format!("{text}\n{rest}"), "larder.toml").expect(text);
        let machine = Machine { memory_bytes: 1 << 30, cpus: 1 };
        unmet(&config, &machine).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn more_memory_than_there_is_is_told_with_its_place() {
        assert_eq!(told("[memory]\nsize = \"1GiB\""), [""; 0]);
        assert_eq!(told(""), [""; 0]);
        let said = told("[memory]\nsize = \"2GiB\"").concat();
        assert!(said.contains("memory: 2048 MiB are more than the 1024 MiB"), "{said}");
        assert!(said.contains("larder.toml:2:8"), "{said}");
    }
}
