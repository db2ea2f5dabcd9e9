//! Scripts of a FastCGI origin: resolves a request's script by the rules of [`fastcgi::script`] and
//! the disk.
//!
//! The disk is accessed on another thread, never on a core, since it may be slow or stalled.
//! Results are cached for a second, so that a busy path costs no access.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::OsStr;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::{fs, io};

use base::{Counters, Limit};
use bytes::Bytes;
use fastcgi::script::{Kind, ScriptTarget, Tree, is_below};
use message::{HeaderId, Method, Request, Response, Status, path};

use crate::config::ScriptsConfig;
use crate::origin::Origin;

/// Milliseconds for which a result is cached.
const KEPT_MS: u64 = 1_000;

/// A resolved path, and the real path of the root.
#[derive(Debug)]
pub(crate) struct ResolvedScript {
    /// The root with all links resolved, so that PHP's own caches notice a deployment that moves a
    /// link (nginx: `$realpath_root`).
    pub(crate) root: Vec<u8>,
    pub(crate) target: ScriptTarget,
}

/// One core's cache of results, by origin.
#[derive(Debug, Default)]
pub(crate) struct ScriptPaths {
    origins: RefCell<HashMap<usize, KnownPath>>,
}

#[derive(Debug)]
struct KnownPath {
    /// Keeps the address that is its key from being reused.
    _origin: Arc<Origin>,
    paths: HashMap<Vec<u8>, (Rc<ResolvedScript>, u64)>,
}

impl ScriptPaths {
    /// Resolves `request`'s path. At most `most` paths are cached.
    pub(crate) async fn find(
        &self,
        origin: &Arc<Origin>,
        scripts: &ScriptsConfig,
        request: &Request,
        now_ms: u64,
        most: usize,
        counters: &Counters,
    ) -> Rc<ResolvedScript> {
        let mut normal = Vec::new();
        let Ok(differs) = path::normal_form(request.path(), &mut normal) else {
            // Policy rejects such paths long before.
            let target = ScriptTarget::Status(Status::new(400).unwrap_or(Status::OK));
            return Rc::new(ResolvedScript { root: Vec::new(), target });
        };
        let path = if differs { &normal } else { request.path() };
        let key = Arc::as_ptr(origin).addr();
        if let Some(known) = self.origins.borrow().get(&key)
            && let Some((found, until_ms)) = known.paths.get(path)
            && now_ms < *until_ms
        {
            return Rc::clone(found);
        }
        let (scripts, path) = (scripts.clone(), path.to_vec());
        let looked = rt::run_blocking(move || {
            let found = look(&scripts, &path);
            (path, found)
        });
        let (path, found) = looked.await;
        let found = Rc::new(found);
        let mut origins = self.origins.borrow_mut();
        let known = origins
            .entry(key)
            .or_insert_with(|| KnownPath { _origin: Arc::clone(origin), paths: HashMap::new() });
        if known.paths.len() >= most {
            counters.limit(Limit::ScriptLookups);
            known.paths.clear();
        }
        if most > 0 {
            known.paths.insert(path, (Rc::clone(&found), now_ms + KEPT_MS));
        }
        found
    }

    /// Removes expired entries.
    pub(crate) fn sweep(&self, now_ms: u64) {
        self.origins.borrow_mut().retain(|_, known| {
            known.paths.retain(|_, (_, until_ms)| now_ms < *until_ms);
            !known.paths.is_empty()
        });
    }
}

fn look(scripts: &ScriptsConfig, path: &[u8]) -> ResolvedScript {
    // A root that does not exist here may be on the application's machine; its paths are used as
    // configured.
    let root = fs::canonicalize(&scripts.root).unwrap_or_else(|_| scripts.root.clone());
    let linked = scripts.linked.iter().filter_map(|dir| fs::canonicalize(dir).ok()).collect();
    let disk = Disk { root: &root, linked, hide: scripts.files.as_ref().map(|files| &files.hide) };
    let target = scripts.rules.resolve(path, &disk);
    let mut root = root.into_os_string().into_vec();
    // The root of the file system is the empty string before a path that begins with a slash.
    if root.ends_with(b"/") {
        root.pop();
    }
    ResolvedScript { root, target }
}

/// Files below a root. Links count as their targets, and only within the root and the directories
/// that settings add to it.
struct Disk<'a> {
    root: &'a Path,
    linked: Vec<PathBuf>,
    /// Hidden files; without it no file is hidden.
    hide: Option<&'a files::HiddenNames>,
}

impl Disk<'_> {
    /// The target of `path`.
    fn real(&self, path: &[u8]) -> io::Result<PathBuf> {
        let relative = path.strip_prefix(b"/").unwrap_or(path);
        fs::canonicalize(self.root.join(OsStr::from_bytes(relative)))
    }

    /// The targets of the directories that match `pattern`. Of `**` only the directory itself is
    /// resolved: it may stand for any depth.
    fn places(&self, pattern: &str) -> Vec<PathBuf> {
        let mut places = vec![self.root.to_path_buf()];
        for segment in pattern.split('/').filter(|segment| !matches!(*segment, "" | "**")) {
            if segment == "*" {
                let listed = places.iter().filter_map(|at| fs::read_dir(at).ok()).flatten();
                places = listed.flatten().map(|entry| entry.path()).collect();
            } else {
                places.iter_mut().for_each(|at| at.push(segment));
            }
        }
        places.iter().filter_map(|at| fs::canonicalize(at).ok()).collect()
    }
}

impl Tree for Disk<'_> {
    fn kind(&self, path: &[u8]) -> Kind {
        let real = match self.real(path) {
            Ok(real) => real,
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => return Kind::Unseen,
            Err(_) => return Kind::Nothing,
        };
        let within = real.starts_with(self.root) || self.linked.iter().any(|d| real.starts_with(d));
        match fs::metadata(&real) {
            _ if !within => Kind::Outside,
            Ok(found) if found.is_file() => match self.hide {
                Some(hide) if hide.hides(path) => Kind::Hidden,
                _ => Kind::File,
            },
            Ok(found) if found.is_dir() => Kind::Directory,
            _ => Kind::Nothing,
        }
    }

    /// Compares by the path itself, by its resolved path, and by the targets of links in the
    /// directory's name: a link may lead into the directory, and the directory may be one.
    fn lies_below(&self, path: &[u8], directory: &str) -> bool {
        if is_below(path, directory) {
            return true;
        }
        let Ok(real) = self.real(path) else { return false };
        // A directory outside the root has its own name, too.
        let outside = self.linked.iter().filter_map(|dir| dir.parent());
        let mut tops = std::iter::once(self.root).chain(outside);
        let is_named = |top: &Path| {
            let rest = real.strip_prefix(top);
            rest.is_ok_and(|rest| is_below(rest.as_os_str().as_bytes(), directory))
        };
        tops.any(is_named) || self.places(directory).iter().any(|place| real.starts_with(place))
    }
}

/// The response to a request without a script.
pub(crate) fn answer(request: &Request, target: &ScriptTarget) -> Option<(Response, Bytes)> {
    let (code, reason) = match target {
        ScriptTarget::Script { .. } => return None,
        ScriptTarget::File(_) => (404, "The path is a file, and only scripts are served here."),
        ScriptTarget::AddSlash => (redirect_status(request), "The path is a directory."),
        ScriptTarget::Status(status) => (status.code(), "There is no script for this path."),
    };
    let status = Status::new(code)?;
    let mut response = Response::new(status);
    response.headers.push(HeaderId::ContentType, b"text/html; charset=utf-8");
    if *target == ScriptTarget::AddSlash {
        response.headers.push(HeaderId::Location, &with_slash(request));
    }
    let page = format!(
        "<!doctype html><html lang=\"en\"><head><title>{status} {phrase}</title>\n{look}</head>\n\
         <body><h1>{status} {phrase}</h1>\n<p>{reason}</p>\n</body></html>\n",
        look = base::html::LOOK,
        phrase = status.reason(),
    );
    let body = if request.method == Method::Head { Bytes::new() } else { page.into() };
    Some((response, body))
}

/// The status of a redirect that keeps the method where it matters.
fn redirect_status(request: &Request) -> u16 {
    if matches!(request.method, Method::Get | Method::Head) { 301 } else { 308 }
}

/// The request's own URL with a slash behind its path. It must be absolute: a path that begins with
/// two slashes would lead to another host.
fn with_slash(request: &Request) -> Vec<u8> {
    let mut url = format!("{}://", request.scheme.as_str()).into_bytes();
    url.extend_from_slice(&request.host);
    if let Some(port) = request.port {
        url.extend_from_slice(format!(":{port}").as_bytes());
    }
    url.extend_from_slice(request.path());
    url.push(b'/');
    if let Some(query) = request.query() {
        url.push(b'?');
        url.extend_from_slice(query);
    }
    url
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use fastcgi::script::ScriptRules;

    use super::*;

    /// A folder that is removed with its test.
    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let folder = std::env::temp_dir().join(format!("larder-{name}-{}", std::process::id()));
            fs::create_dir_all(&folder).expect("a folder");
            Self(folder)
        }

        fn file(&self, name: &str) {
            let path = self.0.join(name);
            fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
            fs::write(path, "<?php").expect("a file");
        }

        fn link(&self, to: &Path, name: &str) {
            symlink(to, self.0.join(name)).expect("a link");
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn config(root: &Path, linked: Vec<PathBuf>) -> ScriptsConfig {
        ScriptsConfig {
            root: root.to_path_buf(),
            linked,
            rules: ScriptRules::default(),
            files: None,
            params: Arc::default(),
        }
    }

    fn name(found: &ResolvedScript) -> Option<&[u8]> {
        match &found.target {
            ScriptTarget::Script { name, .. } => Some(name),
            _ => None,
        }
    }

    #[test]
    fn links_lead_within_the_root_or_where_they_are_allowed_to() {
        let folder = Folder::new("links");
        folder.file("site/index.php");
        folder.file("shared/plugin.php");
        folder.file("secret/evil.php");
        fs::create_dir_all(folder.0.join("site/d.php")).expect("a folder");
        let at = |name: &str| folder.0.join(name);
        folder.link(&at("site/index.php"), "site/same.php");
        folder.link(&at("shared"), "site/shared");
        folder.link(&at("secret/evil.php"), "site/evil.php");
        folder.link(&at("nowhere"), "site/dangling.php");
        folder.link(&at("site"), "current");

        let config = config(&at("current"), vec![at("shared")]);
        let real = fs::canonicalize(at("site")).expect("a folder").into_os_string().into_vec();
        for path in ["/same.php", "/shared/plugin.php", "/index.php"] {
            let found = look(&config, path.as_bytes());
            assert_eq!(name(&found), Some(path.as_bytes()));
            assert_eq!(found.root, real, "the root is where the link leads");
        }
        let code = |path: &str| match look(&config, path.as_bytes()).target {
            ScriptTarget::Status(status) => status.code(),
            other => panic!("{path}: {other:?}"),
        };
        assert_eq!(code("/evil.php"), 403);
        assert_eq!(code("/dangling.php"), 404);
        let found = look(&config, b"/d.php");
        assert_eq!(name(&found), Some(&b"/index.php"[..]), "a directory is no script");
    }

    #[test]
    fn nothing_runs_below_a_barred_directory_by_whatever_name() {
        let folder = Folder::new("barred");
        for file in [
            "site/index.php",
            "site/shared/pictures/x.php",
            "site/blog/uploads/y.php",
            "site/sites/a/files/z.php",
            "site/sites/a/themes/t.php",
            "media/w.php",
        ] {
            folder.file(file);
        }
        let at = |name: &str| folder.0.join(name);
        // The directory of uploads is a link, as in deployments; other links lead into one.
        folder.link(&at("site/shared/pictures"), "site/uploads");
        folder.link(&at("site/blog/uploads"), "site/alias");
        folder.link(&at("site/blog/uploads/y.php"), "site/y.php");
        folder.link(&at("site/sites/a"), "site/sites/b");
        folder.link(&at("media"), "site/elsewhere");
        let mut config = config(&at("site"), vec![at("media")]);
        let barred = ["/uploads", "/**/uploads", "/sites/*/files", "/**/media"];
        config.rules.barred = barred.map(str::to_owned).into();
        for path in [
            "/uploads/x.php",
            "/shared/pictures/x.php",
            "/shared/pictures/x.php/a.css",
            "/blog/uploads/y.php",
            "/alias/y.php",
            "/y.php",
            "/sites/b/files/z.php",
            "/elsewhere/w.php",
        ] {
            let status = Status::new(403).expect("three digits");
            let found = look(&config, path.as_bytes()).target;
            assert_eq!(found, ScriptTarget::Status(status), "{path}");
        }
        for path in ["/index.php", "/sites/b/themes/t.php"] {
            let found = look(&config, path.as_bytes());
            assert_eq!(name(&found), Some(path.as_bytes()));
        }
    }

    #[test]
    fn a_root_that_is_elsewhere_has_only_what_is_named() {
        let config = config(Path::new("/no/such/root"), Vec::new());
        let found = look(&config, b"/a/b");
        assert_eq!(name(&found), Some(&b"/index.php"[..]));
        assert_eq!(found.root, b"/no/such/root");
    }

    #[test]
    fn a_missing_slash_is_added_to_an_absolute_url() {
        let mut request = Request::new();
        request.host = b"example.com".to_vec();
        request.port = Some(8080);
        request.target = b"//evil.example?a=b".to_vec();
        let (response, _) = answer(&request, &ScriptTarget::AddSlash).expect("an answer");
        assert_eq!(response.status.code(), 301);
        assert_eq!(
            response.headers.value(HeaderId::Location),
            Some(&b"http://example.com:8080//evil.example/?a=b"[..])
        );
        request.method = Method::Post;
        let (response, _) = answer(&request, &ScriptTarget::AddSlash).expect("an answer");
        assert_eq!(response.status.code(), 308);
    }
}
