//! The allowlist: the files that the keeper opens. It lists the files that the configuration names,
//! on paths that only root can change.

use std::collections::HashSet;
use std::fs::Metadata;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

use config::{CliSecret, Config, FieldSource, LogTarget, PairFiles, Programs, SiteConfig};

use super::open_purpose::OpenPurpose;

/// Links on the way to a file, as many as the kernel follows (path_resolution(7)).
const LINKS_MAX: u32 = 40;

/// The sticky bit: every user may create files in the folder, only owners remove them.
const STICKY: u32 = 0o1000;
/// Users other than the owner may write.
const OTHERS_WRITE: u32 = 0o022;

/// Files that may be opened.
#[derive(Debug, Default)]
pub(super) struct FileAllowlist {
    config: Option<PathBuf>,
    /// Files that are allowed whatever the configuration names.
    always: Vec<PathBuf>,
    read: HashSet<PathBuf>,
    append: HashSet<PathBuf>,
    /// Identity and times of the configuration file when it was last read.
    seen: Option<(u64, u64, i64, i64)>,
}

impl FileAllowlist {
    pub(super) fn new(config: Option<PathBuf>, always: Vec<PathBuf>) -> Self {
        let mut allowed = Self { config, always, ..Self::default() };
        allowed.renew();
        allowed
    }

    /// Returns true if `path`, as the configuration writes it, may be opened for the purpose `how`.
    pub(super) fn may(&mut self, path: &Path, how: OpenPurpose) -> bool {
        self.renew();
        let is_named = match how {
            OpenPurpose::Read => {
                let is_it = |own: &PathBuf| own == path;
                self.read.contains(path) || self.config.iter().chain(&self.always).any(is_it)
            }
            OpenPurpose::Append => self.append.contains(path),
        };
        is_named && is_roots(path, how)
    }

    /// Reads the configuration again if it was changed. A file that users other than root can write
    /// is ignored, and so is a faulty one: the list stays.
    fn renew(&mut self) {
        let Some(file) = &self.config else { return };
        let Ok(found) = std::fs::metadata(file) else { return };
        let stamp = (found.dev(), found.ino(), found.ctime(), found.ctime_nsec());
        if self.seen == Some(stamp) || !is_roots(file, OpenPurpose::Read) {
            return;
        }
        self.seen = Some(stamp);
        if found.uid() == 0
            && found.mode() & OTHERS_WRITE == 0
            && let Ok((config, _)) = config::load_file(file)
        {
            self.read = named(&config);
            let logs = [config.access_log.map(|log| log.target), config.error_log.target];
            let file = |target| match target {
                LogTarget::File(path) => Some(path),
                _ => None,
            };
            self.append = logs.into_iter().flatten().filter_map(file).collect();
        }
    }
}

/// The files that a configuration has the daemon read.
fn named(config: &Config) -> HashSet<PathBuf> {
    let mut all = HashSet::new();
    let mut pair = |files: &PairFiles| all.extend([files.cert.clone(), files.key.clone()]);
    config.certificates.iter().for_each(&mut pair);
    config.sites.iter().flat_map(|site| &site.tls.pairs).for_each(&mut pair);
    let metrics = config.metrics.iter();
    metrics.clone().flat_map(|metrics| &metrics.pairs).for_each(&mut pair);
    let upstreams = config.origin_tls.iter().flatten();
    upstreams.clone().filter_map(|tls| tls.pair.as_ref()).for_each(&mut pair);
    all.extend(upstreams.filter_map(|tls| tls.ca.as_ref()).map(|file| file.path.clone()));
    all.extend(
        config.sites.iter().filter_map(|site| site.tls.client.as_ref()).map(|c| c.ca.clone()),
    );
    all.extend(
        config.sites.iter().filter_map(|site| site.vcl.as_ref()).map(|file| file.path.clone()),
    );
    all.extend(config.sites.iter().flat_map(|site| &site.error_pages).map(|p| p.path.clone()));
    let files = |site: &SiteConfig| {
        let all = site.users.iter().chain(&site.redirect_maps).chain(&site.warm.list);
        all.map(|file| file.path.clone()).collect::<Vec<_>>()
    };
    all.extend(config.sites.iter().flat_map(files));
    let lists = config.crawlers.verify.iter().map(|(_, file)| file);
    let signers = config.crawlers.signatures.iter();
    let keys = signers.flat_map(|own| own.keys.iter().chain(&own.ca));
    all.extend(lists.chain(&config.crawlers.file).chain(keys).map(|file| file.path.clone()));
    all.extend(config.geoip.iter().map(|file| file.path.clone()));
    if let Programs::File(file) = &config.vcl {
        all.insert(file.path.clone());
    }
    all.extend(metrics.clone().filter_map(|own| own.client.as_ref()).map(|c| c.ca.clone()));
    all.extend(metrics.filter_map(|own| own.token.as_ref()).map(|file| file.path.clone()));
    let secret = config.varnish_cli.as_ref().map(|cli| &cli.secret);
    if let Some(CliSecret::File(file)) = secret {
        all.insert(file.path.clone());
    }
    let secrets = config.cluster.iter().flat_map(|cluster| &cluster.secret_files).flatten();
    all.extend(secrets.map(|file| file.path.clone()));
    let collector = config.tracing.iter();
    let upstreams = collector.clone().filter_map(|own| own.tls.as_ref());
    all.extend(upstreams.filter_map(|tls| tls.ca.as_ref()).map(|file| file.path.clone()));
    let fields = collector.flat_map(|own| &own.headers).map(|(_, source)| source);
    all.extend(fields.filter_map(|source| match source {
        FieldSource::File(file) => Some(file.path.clone()),
        FieldSource::Text(_) => None,
    }));
    let authority = config.acme.as_ref().and_then(|acme| acme.ca.as_ref());
    all.extend(authority.into_iter().map(|file| file.path.clone()));
    all
}

/// Returns true if only root can make `path` lead elsewhere.
pub(super) fn is_roots(path: &Path, how: OpenPurpose) -> bool {
    std::path::absolute(path).and_then(|path| leads(&path, how, LINKS_MAX)).unwrap_or(false)
}

fn leads(path: &Path, how: OpenPurpose, links: u32) -> io::Result<bool> {
    let mut at = PathBuf::from("/");
    let mut folder = std::fs::symlink_metadata(&at)?;
    let mut rest = path.components();
    while let Some(part) = rest.next() {
        match part {
            Component::Normal(name) => at.push(name),
            Component::ParentDir => {
                at.pop();
                folder = std::fs::symlink_metadata(&at)?;
                continue;
            }
            _ => continue,
        }
        let found = match std::fs::symlink_metadata(&at) {
            // The file will be created, in a folder of root's.
            Err(error)
                if error.kind() == io::ErrorKind::NotFound
                    && rest.as_path().as_os_str().is_empty() =>
            {
                return Ok(how == OpenPurpose::Append && folder.mode() & OTHERS_WRITE == 0);
            }
            found => found?,
        };
        if found.is_symlink() {
            if found.uid() != 0 || links == 0 {
                return Ok(false);
            }
            at.pop();
            let target = at.join(std::fs::read_link(at.join(part))?).join(rest.as_path());
            return leads(&target, how, links - 1);
        }
        if found.is_dir() {
            if !is_closed(&found) {
                return Ok(false);
            }
            folder = found;
            continue;
        }
        // In a folder that every user may write to, the file may be a second name of another
        // user's.
        let open = folder.mode() & OTHERS_WRITE != 0;
        let is_last = rest.as_path().as_os_str().is_empty();
        return Ok(is_last
            && found.is_file()
            && !(open && (found.uid() != 0 || found.nlink() > 1)));
    }
    Ok(false)
}

/// Returns true if a folder is root's, and no other user can replace root's files in it.
fn is_closed(folder: &Metadata) -> bool {
    folder.uid() == 0 && (folder.mode() & OTHERS_WRITE == 0 || folder.mode() & STICKY != 0)
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{PermissionsExt, chown, symlink};
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    /// A folder of root's, with a folder of another user in it.
    struct Scene(PathBuf);

    impl Scene {
        /// `None` unless the tests are run by root.
        fn new() -> Option<Self> {
            if !rustix::process::geteuid().is_root() {
                base::say!("skipped: only root can give files away");
                return None;
            }
            static NEXT: AtomicU32 = AtomicU32::new(0);
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let name = format!("larder-keeper-{}-{number}", std::process::id());
            let folder = std::env::temp_dir().join(name);
            fs::create_dir_all(folder.join("theirs")).expect("a folder");
            fs::set_permissions(&folder, Permissions::from_mode(0o755)).expect("a mode");
            for file in ["key", "other", "theirs/key"] {
                fs::write(folder.join(file), file).expect("a file");
            }
            symlink("key", folder.join("link")).expect("a link");
            symlink("../key", folder.join("theirs/link")).expect("a link");
            symlink("theirs/key", folder.join("leads-out")).expect("a link");
            chown(folder.join("theirs"), Some(65534), None).expect("given");
            Some(Self(folder))
        }

        fn is_roots(&self, file: &str, how: OpenPurpose) -> bool {
            is_roots(&self.0.join(file), how)
        }
    }

    impl Drop for Scene {
        fn drop(&mut self) {
            _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn a_way_that_somebody_else_can_turn_is_not_gone() {
        let Some(scene) = Scene::new() else { return };
        for (file, is) in [
            ("key", true),
            ("link", true),
            ("../larder-nothing/key", false),
            ("theirs/key", false),
            ("theirs/link", false),
            ("theirs/../key", false),
            ("leads-out", false),
            ("theirs", false),
            ("missing", false),
        ] {
            assert_eq!(scene.is_roots(file, OpenPurpose::Read), is, "{file}");
        }
        assert!(scene.is_roots("missing", OpenPurpose::Append));
        assert!(!scene.is_roots("theirs/missing", OpenPurpose::Append));
        fs::set_permissions(&scene.0, Permissions::from_mode(0o777)).expect("a mode");
        assert!(!scene.is_roots("key", OpenPurpose::Read), "everybody may put another there");
    }

    #[test]
    fn files_of_the_collector_of_traces_are_named() {
        let text = "[tracing]\nendpoint = \"https://a\"\nca = \"/ca\"\n\
                    headers = { a = { file = \"/key\" }, b = \"c\" }\n\
                    [[site]]\nhost = \"*\"\norigin = \"http://127.0.0.1:1\"\n";
        let (config, _) = config::load_str(text, "larder.toml").expect("a configuration");
        assert_eq!(named(&config), ["/ca", "/key"].map(PathBuf::from).into());
    }

    #[test]
    fn only_what_is_named_is_opened_and_a_file_that_others_write_names_nothing() {
        let Some(scene) = Scene::new() else { return };
        let at = |file: &str| scene.0.join(file);
        let config = at("larder.toml");
        let text = |log: &str| {
            format!(
                "access_log = \"{}\"\n[[site]]\nhost = \"*\"\norigin = \"http://127.0.0.1:1\"\n",
                at(log).display()
            )
        };
        fs::write(&config, text("key")).expect("written");
        let mut allowed = FileAllowlist::new(Some(config.clone()), vec![at("link")]);
        assert!(
            allowed.may(&config, OpenPurpose::Read) && allowed.may(&at("link"), OpenPurpose::Read)
        );
        assert!(allowed.may(&at("key"), OpenPurpose::Append));
        assert!(
            !allowed.may(&at("key"), OpenPurpose::Read)
                && !allowed.may(&at("other"), OpenPurpose::Append)
        );

        fs::write(&config, text("other")).expect("written");
        assert!(
            allowed.may(&at("other"), OpenPurpose::Append)
                && !allowed.may(&at("key"), OpenPurpose::Append)
        );
        let both = text("other").replacen("access_log", "error_log", 1);
        fs::write(&config, both).expect("written");
        assert!(allowed.may(&at("other"), OpenPurpose::Append), "the other log's file is one, too");
        fs::write(&config, "nonsense").expect("written");
        assert!(allowed.may(&at("other"), OpenPurpose::Append), "a wrong file changes nothing");
        fs::write(&config, text("key")).expect("written");
        chown(&config, Some(65534), None).expect("given");
        assert!(
            !allowed.may(&at("key"), OpenPurpose::Append)
                && allowed.may(&at("other"), OpenPurpose::Append)
        );
    }
}
