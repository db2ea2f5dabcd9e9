//! `larder preset install`: writes a plugin's file to its application's folder.
//!
//! It must never overwrite a file that is no version of that plugin, and no other process may ever
//! see half of the file.

use std::fs::{self, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use config::preset::Plugin;

/// Installs `plugin` in the application at `root`; returns what was done, a line each. `replace`
/// permits to overwrite another version of the plugin.
pub(super) fn install(plugin: &Plugin, root: &Path, replace: bool) -> Result<String, String> {
    let name = plugin.application;
    if !root.join(plugin.sign).is_file() {
        return Err(format!("no {name} in {}: it has no {}", root.display(), plugin.sign));
    }
    if !root.join(plugin.folder).is_dir() {
        return Err(format!(
            "{} has no {}: put what `--print` prints where your {name} has it",
            root.display(),
            plugin.folder
        ));
    }
    let place = root.join(plugin.place);
    let shown = place.display();
    let done = match fs::read(&place) {
        Ok(bytes) if bytes == plugin.text.as_bytes() => "is there already",
        Ok(bytes) if !bytes.starts_with(plugin.head.as_bytes()) => {
            return Err(format!("{shown} is another file: it is left as it is"));
        }
        Ok(_) if !replace => {
            return Err(format!("{shown} is another version of it: `--replace` replaces that"));
        }
        Ok(_) => {
            put(plugin, &place, true).map_err(|error| format!("{shown}: {error}"))?;
            "is replaced"
        }
        Err(error) if error.kind() == ErrorKind::NotFound => {
            put(plugin, &place, false).map_err(|error| format!("{shown}: {error}"))?;
            "is installed"
        }
        Err(error) => return Err(format!("{shown}: {error}")),
    };
    Ok(format!("{shown} {done}\n{name} loads it by itself, from its next request on.\n"))
}

/// Writes the file beside `place` and then renames it: over another version, or only if nothing is
/// there.
fn put(plugin: &Plugin, place: &Path, replace: bool) -> io::Result<()> {
    let folder = place.parent().ok_or(ErrorKind::InvalidInput)?;
    if !folder.is_dir() {
        fs::create_dir(folder)?;
        fs::set_permissions(folder, Permissions::from_mode(0o755))?;
    }
    let part = place.with_extension("part");
    let mut file = OpenOptions::new().write(true).create_new(true).open(&part)?;
    // PHP reads the file as another user.
    let readable = file.set_permissions(Permissions::from_mode(0o644));
    let written = readable.and_then(|()| file.write_all(plugin.text.as_bytes()));
    let named = written.and_then(|()| match replace {
        true => fs::rename(&part, place),
        false => fs::hard_link(&part, place),
    });
    if !replace || named.is_err() {
        fs::remove_file(&part)?;
    }
    named
}
