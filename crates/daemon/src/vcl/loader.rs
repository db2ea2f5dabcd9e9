//! The loader of programs' files: resolves a name in `vcl_path`, or beside the including file.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::{Component, Path, PathBuf};

use vcl::params::{Param, Params};
use vcl::source::Loader;

/// Reads the files of one program.
#[derive(Clone, Debug)]
pub(crate) struct ProgramLoader {
    /// `vcl_path`.
    folders: Vec<PathBuf>,
    /// Names may lead anywhere (`vcc_unsafe_path`).
    anywhere: bool,
    /// The folders that files must be in; `None` without a restriction.
    within: Option<Vec<PathBuf>>,
    /// The files of a bundle, by their paths; `None` for those of the machine.
    bundled: Option<BTreeMap<String, String>>,
}

impl ProgramLoader {
    /// A loader with the parameters' paths.
    pub(crate) fn new(params: &Params) -> Self {
        let folders = params.text(Param::VclPath).split(':').filter(|path| !path.is_empty());
        Self {
            folders: folders.map(PathBuf::from).collect(),
            anywhere: params.is_on(Param::VccUnsafePath),
            within: None,
            bundled: None,
        }
    }

    /// Restricts it to these files, and none of the machine's.
    pub(crate) fn bundled(mut self, files: &BTreeMap<String, String>) -> Self {
        self.bundled = Some(files.clone());
        self
    }

    /// Restricts it to `vcl_path` and `folders`: for clients that may load programs, but not read
    /// every file of the daemon, which an error message quotes.
    pub(crate) fn within(mut self, folders: Vec<PathBuf>) -> Self {
        let all = self.folders.iter().cloned().chain(folders);
        // A missing folder has no files.
        self.within = Some(all.filter_map(|folder| folder.canonicalize().ok()).collect());
        self
    }

    /// Returns true if the file at `path` may be read, or is missing: reading that finds nothing.
    fn is_within(&self, path: &Path) -> bool {
        let Some(folders) = &self.within else { return true };
        let Ok(full) = path.canonicalize() else { return !path.exists() };
        folders.iter().any(|folder| full.starts_with(folder))
    }

    /// Reads the file called `name`: an absolute path, or one below `vcl_path`.
    ///
    /// # Errors
    /// The reason, in varnishd's words.
    pub(crate) fn read(&self, name: &str) -> Result<(String, Vec<u8>), String> {
        self.load(name, "")
    }

    /// The candidate paths of a name.
    fn candidates(&self, name: &str, from: &str) -> Result<Vec<PathBuf>, String> {
        if !self.anywhere && name.contains('/') {
            return Err(format!("`{name}`: `vcc_unsafe_path` is off, so names have no `/`"));
        }
        if name.starts_with('/') {
            return Ok(vec![PathBuf::from(name)]);
        }
        if let Some(beside) = name.strip_prefix("./") {
            let folder = Path::new(from).parent().unwrap_or_else(|| Path::new(""));
            return Ok(vec![folder.join(beside)]);
        }
        Ok(self.folders.iter().map(|folder| folder.join(name)).collect())
    }
}

impl Loader for ProgramLoader {
    fn load(&self, name: &str, from: &str) -> Result<(String, Vec<u8>), String> {
        let mut missing = "No such file or directory".to_owned();
        for path in self.candidates(name, from)? {
            if let Some(files) = &self.bundled {
                let path = path.to_string_lossy().into_owned();
                if let Some(text) = files.get(&path) {
                    return Ok((path, text.clone().into_bytes()));
                }
                continue;
            }
            if !self.is_within(&path) {
                missing = "It is neither in vcl_path nor beside a site's VCL".to_owned();
                continue;
            }
            match crate::keeper::read(&path) {
                Ok(text) => return Ok((path.to_string_lossy().into_owned(), text)),
                // Another folder may have it.
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                Err(error) => {
                    missing = crate::keeper::without_code(&error);
                    break;
                }
            }
        }
        Err(format!("Cannot read file '{name}' ({missing})"))
    }

    fn glob(&self, pattern: &str, from: &str) -> Result<Vec<String>, String> {
        let mut found = Vec::new();
        for path in self.candidates(pattern, from)? {
            match &self.bundled {
                Some(files) => {
                    found.extend(files.keys().filter(|own| is_meant(&path, own)).cloned());
                }
                None => found.extend(expand(&path)?),
            }
        }
        found.sort();
        Ok(found)
    }

    fn resolve(&self, host: &str) -> Result<Vec<IpAddr>, String> {
        use std::net::ToSocketAddrs as _;
        let found = (host, 0_u16).to_socket_addrs().map_err(|error| error.to_string())?;
        let mut addresses: Vec<_> = found.map(|address| address.ip()).collect();
        addresses.dedup();
        Ok(addresses)
    }
}

/// Returns true if a pattern matches `path`, as [`expand`] reads it.
fn is_meant(pattern: &Path, path: &str) -> bool {
    let (parts, own) = (pattern.components(), Path::new(path).components());
    let is_like = |(part, own): (Component<'_>, Component<'_>)| {
        let (part, own) = (part.as_os_str().to_string_lossy(), own.as_os_str().to_string_lossy());
        let is_hidden = own.starts_with('.') && !part.starts_with('.');
        part == own || !is_hidden && crate::glob::matches_glob(part.as_bytes(), own.as_bytes())
    };
    parts.clone().count() == own.clone().count() && parts.zip(own).all(is_like)
}

/// The files that a pattern matches: `*` and `?` in any component.
fn expand(pattern: &Path) -> Result<Vec<String>, String> {
    let mut found = vec![PathBuf::new()];
    for part in pattern.components() {
        let text = part.as_os_str().to_string_lossy();
        if !text.contains(['*', '?']) {
            found.iter_mut().for_each(|path| path.push(part));
            continue;
        }
        let mut next = Vec::new();
        for folder in &found {
            let here = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
            // A missing folder is empty.
            let Ok(entries) = std::fs::read_dir(here) else { continue };
            for entry in entries {
                let entry = entry.map_err(|error| error.to_string())?;
                let name = entry.file_name();
                let name = name.to_string_lossy();
                // As in a shell, a leading dot hides a name.
                let hidden = name.starts_with('.') && !text.starts_with('.');
                if !hidden && crate::glob::matches_glob(text.as_bytes(), name.as_bytes()) {
                    next.push(folder.join(&*name));
                }
            }
        }
        found = next;
    }
    found.retain(|path| path.is_file());
    Ok(found.iter().map(|path| path.to_string_lossy().into_owned()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder() -> PathBuf {
        static NUMBER: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let name = format!("larder-loader-{}-{number}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir_all(folder.join("parts")).expect("a folder");
        for file in ["main.vcl", "parts/b.vcl", "parts/a.vcl", "parts/.hidden.vcl", "parts/c.txt"] {
            std::fs::write(folder.join(file), file).expect("a file");
        }
        folder
    }

    fn files(folder: &Path, unsafe_path: &str) -> ProgramLoader {
        let mut params = Params::default();
        params.set("vcl_path", &format!("/nowhere:{}", folder.display())).expect("a path");
        params.set("vcc_unsafe_path", unsafe_path).expect("a switch");
        ProgramLoader::new(&params)
    }

    #[test]
    fn names_lead_below_the_path_beside_the_file_or_anywhere() {
        let folder = folder();
        let files = files(&folder, "on");
        let main = folder.join("main.vcl").display().to_string();
        assert_eq!(files.read("main.vcl"), Ok((main.clone(), b"main.vcl".to_vec())));
        assert_eq!(files.read(&main), Ok((main.clone(), b"main.vcl".to_vec())));
        assert_eq!(files.load("./parts/a.vcl", &main).expect("beside").1, b"parts/a.vcl");
        assert_eq!(
            files.read("nothing.vcl"),
            Err("Cannot read file 'nothing.vcl' (No such file or directory)".to_owned())
        );
        std::fs::remove_dir_all(folder).expect("removed");
    }

    #[test]
    fn patterns_mean_files_in_the_order_of_their_names() {
        let folder = folder();
        let files = files(&folder, "on");
        let main = folder.join("main.vcl").display().to_string();
        let found = files.glob("./parts/*.vcl", &main).expect("a pattern");
        let name = |path: &String| path.rsplit('/').next().map(str::to_owned);
        let names: Vec<_> = found.iter().filter_map(name).collect();
        assert_eq!(names, ["a.vcl", "b.vcl"]);
        assert_eq!(files.glob("nothing/*.vcl", &main), Ok(Vec::new()));
        std::fs::remove_dir_all(folder).expect("removed");
    }

    #[test]
    fn without_unsafe_paths_names_have_no_slash() {
        let folder = folder();
        let files = files(&folder, "off");
        assert!(files.read("main.vcl").is_ok());
        for name in ["/etc/passwd", "./main.vcl", "../main.vcl"] {
            let refused = files.load(name, "").expect_err(name);
            assert!(refused.contains("`vcc_unsafe_path` is off"), "{refused}");
        }
        std::fs::remove_dir_all(folder).expect("removed");
    }

    #[test]
    fn files_that_are_carried_are_the_only_ones() {
        let folder = folder();
        let own = |name: &str| folder.join(name).display().to_string();
        let bundled: BTreeMap<_, _> = ["main.vcl", "parts/b.vcl", "parts/.a.vcl", "parts/x/c.vcl"]
            .map(|name| (own(name), format!("carried {name}")))
            .into();
        let files = files(&folder, "on").bundled(&bundled);
        let main = own("main.vcl");
        assert_eq!(files.read("main.vcl"), Ok((main.clone(), b"carried main.vcl".to_vec())));
        assert_eq!(files.load("./parts/b.vcl", &main).expect("beside").1, b"carried parts/b.vcl");
        assert_eq!(files.glob("./parts/*.vcl", &main), Ok(vec![own("parts/b.vcl")]));
        let why = files.load("./parts/a.vcl", &main).expect_err("it is on the machine alone");
        assert!(why.contains("No such file"), "{why}");
        std::fs::remove_dir_all(folder).expect("removed");
    }

    #[test]
    fn files_can_be_held_to_their_folders() {
        let folder = folder();
        let (inside, outside) = (folder.join("inside"), folder.join("outside"));
        for one in [&inside, &outside] {
            std::fs::create_dir_all(one).expect("made");
            std::fs::write(one.join("a.vcl"), "vcl 4.1;").expect("written");
        }
        std::os::unix::fs::symlink(outside.join("a.vcl"), inside.join("link.vcl")).expect("made");
        let mut params = Params::default();
        params.set("vcl_path", &inside.to_string_lossy()).expect("a path");
        let name = |folder: &Path, file: &str| folder.join(file).to_string_lossy().into_owned();
        let files = ProgramLoader::new(&params).within(Vec::new());
        for good in ["a.vcl".to_owned(), name(&inside, "a.vcl")] {
            assert!(files.read(&good).is_ok(), "{good}");
        }
        let (link, up) = ("link.vcl".to_owned(), name(&inside, "../outside/a.vcl"));
        for bad in [name(&outside, "a.vcl"), link, up, "/etc/hostname".to_owned()] {
            let why = files.read(&bad).expect_err(&bad);
            assert!(why.contains("neither in vcl_path"), "{why}");
        }
        assert!(files.read("nothing.vcl").expect_err("none").contains("No such file"));
        let both = ProgramLoader::new(&params).within(vec![outside.clone()]);
        assert!(both.read(&name(&outside, "a.vcl")).is_ok());
        assert!(
            ProgramLoader::new(&params).read("link.vcl").is_ok(),
            "who may read everything may"
        );
    }
}
