//! Script of a path: nginx's `try_files`, `index` and `fastcgi_split_path_info` in one place.
//!
//! Only a regular file with a script's suffix is ever run. A path that names a missing script is a
//! 404, never the path info of another script: `/x.jpg/y.php` must not run an uploaded picture,
//! whatever `cgi.fix_pathinfo` is.

use message::Status;

/// Rules that map paths to scripts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptRules {
    /// Entries in the order of attempts; 404 if all fail.
    pub tries: Vec<TryFilesEntry>,
    /// Names of a directory's index, in order of preference.
    pub index: Vec<String>,
    /// Suffixes of scripts, such as `.php`.
    pub suffixes: Vec<String>,
    /// Directories without scripts: see [`is_below`].
    pub barred: Vec<String>,
}

impl Default for ScriptRules {
    /// The order for WordPress, Drupal and Laravel: the path itself, its directory's index, the
    /// front controller.
    fn default() -> Self {
        Self {
            tries: vec![
                TryFilesEntry::Path,
                TryFilesEntry::Directory,
                TryFilesEntry::Front("/index.php".to_owned()),
            ],
            index: vec!["index.php".to_owned(), "index.html".to_owned()],
            suffixes: vec![".php".to_owned()],
            barred: Vec::new(),
        }
    }
}

/// One entry of `try_files`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TryFilesEntry {
    /// The path itself, as a script or another file (`$uri`).
    Path,
    /// The index of the directory that the path names (`$uri/`).
    Directory,
    /// This script, for every remaining path. It is not checked, since it may be on another
    /// machine's disk.
    Front(String),
    /// This status.
    Status(Status),
}

/// The kind of file at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A regular file that is below the root after resolving links.
    File,
    /// A regular file below the root that is never served, but may be run.
    Hidden,
    /// A directory that is below the root after resolving links.
    Directory,
    /// A link to a target outside the root.
    Outside,
    /// No file, or one of another kind.
    Nothing,
    /// Unknown: this process has no permission to look.
    Unseen,
}

/// The files on disk.
pub trait Tree {
    /// The kind of file at `path`, which begins with a slash and has neither `.` nor `..`.
    fn kind(&self, path: &[u8]) -> Kind;

    /// Returns true if the file at `path` is below `directory`, as in [`is_below`]. A tree with
    /// links also compares their targets.
    fn lies_below(&self, path: &[u8], directory: &str) -> bool {
        is_below(path, directory)
    }
}

/// The result of resolving a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScriptTarget {
    /// A script.
    Script {
        /// Its path below the root.
        name: Vec<u8>,
        /// The rest of the path after it.
        path_info: Vec<u8>,
    },
    /// A file below the root that is not a script.
    File(Vec<u8>),
    /// A directory that was requested without its final slash: relative links in its index would
    /// break. Apache redirects such requests, too.
    AddSlash,
    /// No file: a response with this status.
    Status(Status),
}

impl ScriptRules {
    /// Adds directories without scripts.
    pub fn bar(&mut self, directories: &[String]) {
        let new = directories.iter().filter(|directory| !self.barred.contains(directory));
        let new: Vec<_> = new.cloned().collect();
        self.barred.extend(new);
    }

    /// Returns true if existing files may be run as scripts, not only those that the rules name.
    pub fn runs_what_is_there(&self) -> bool {
        self.tries
            .iter()
            .any(|attempt| matches!(attempt, TryFilesEntry::Path | TryFilesEntry::Directory))
    }

    /// Resolves `path`, the normal form of a request's path, without query.
    pub fn resolve(&self, path: &[u8], tree: &dyn Tree) -> ScriptTarget {
        if is_hidden(path) {
            return status(403);
        }
        for attempt in &self.tries {
            let found = match attempt {
                TryFilesEntry::Path => self.path(path, tree),
                TryFilesEntry::Directory => self.directory(path, tree),
                TryFilesEntry::Front(name) => Some(ScriptTarget::Script {
                    name: name.clone().into_bytes(),
                    path_info: Vec::new(),
                }),
                TryFilesEntry::Status(status) => Some(ScriptTarget::Status(*status)),
            };
            if let Some(found) = found {
                return found;
            }
        }
        status(404)
    }

    fn path(&self, path: &[u8], tree: &dyn Tree) -> Option<ScriptTarget> {
        for end in segment_ends(path).filter(|end| self.is_script(&path[..*end])) {
            let (name, path_info) = path.split_at(end);
            match tree.kind(name) {
                Kind::File | Kind::Hidden if self.is_barred(name, tree) => {
                    return Some(status(403));
                }
                Kind::File | Kind::Hidden => {
                    let (name, path_info) = (name.to_vec(), path_info.to_vec());
                    return Some(ScriptTarget::Script { name, path_info });
                }
                // `/app.php/` may be a directory's name.
                Kind::Directory => {}
                Kind::Outside => return Some(status(403)),
                Kind::Unseen if self.is_barred(name, tree) => return Some(status(403)),
                // The application can see it. It must not take a file in the path for the script.
                Kind::Unseen if !has_dotted_folder(name) => {
                    let (name, path_info) = (name.to_vec(), path_info.to_vec());
                    return Some(ScriptTarget::Script { name, path_info });
                }
                Kind::Nothing | Kind::Unseen => return Some(status(404)),
            }
        }
        match tree.kind(path) {
            _ if path.ends_with(b"/") => None,
            Kind::File => Some(ScriptTarget::File(path.to_vec())),
            Kind::Outside => Some(status(403)),
            // A hidden file is treated as missing: a later entry gives the same response as for any
            // other name.
            Kind::Directory | Kind::Hidden | Kind::Nothing | Kind::Unseen => None,
        }
    }

    fn directory(&self, path: &[u8], tree: &dyn Tree) -> Option<ScriptTarget> {
        let bare = path.strip_suffix(b"/").unwrap_or(path);
        match tree.kind(if bare.is_empty() { b"/" } else { bare }) {
            Kind::Directory => {}
            Kind::Outside => return Some(status(403)),
            Kind::File | Kind::Hidden | Kind::Nothing | Kind::Unseen => return None,
        }
        for index in &self.index {
            let name = [bare, b"/", index.as_bytes()].concat();
            match tree.kind(&name) {
                Kind::Hidden if !self.is_script(&name) => {}
                Kind::File | Kind::Hidden if !path.ends_with(b"/") => {
                    return Some(ScriptTarget::AddSlash);
                }
                Kind::File if !self.is_script(&name) => return Some(ScriptTarget::File(name)),
                Kind::File | Kind::Hidden if self.is_barred(&name, tree) => {
                    return Some(status(403));
                }
                Kind::File | Kind::Hidden => {
                    return Some(ScriptTarget::Script { name, path_info: Vec::new() });
                }
                Kind::Outside => return Some(status(403)),
                Kind::Directory | Kind::Nothing | Kind::Unseen => {}
            }
        }
        None
    }

    fn is_script(&self, name: &[u8]) -> bool {
        self.suffixes.iter().any(|suffix| name.ends_with(suffix.as_bytes()))
    }

    fn is_barred(&self, name: &[u8], tree: &dyn Tree) -> bool {
        self.barred.iter().any(|directory| tree.lies_below(name, directory))
    }
}

/// Returns true if `name` is a path below `directory`, whose segments may be `*` for any one and
/// `**` for any number of segments. Compared without regard to case, as some file systems do.
pub fn is_below(name: &[u8], directory: &str) -> bool {
    let wanted: Vec<_> = segments(directory.as_bytes()).collect();
    let own: Vec<_> = segments(name).collect();
    leads_below(&wanted, &own)
}

fn leads_below(wanted: &[&[u8]], own: &[&[u8]]) -> bool {
    match wanted.split_first() {
        None => !own.is_empty(),
        Some((&b"**", rest)) => (0..=own.len()).any(|at| leads_below(rest, &own[at..])),
        Some((first, rest)) => own.split_first().is_some_and(|(segment, own)| {
            (*first == b"*" || first.eq_ignore_ascii_case(segment)) && leads_below(rest, own)
        }),
    }
}

/// Returns true if a segment before the last has a dot, as names of files have.
fn has_dotted_folder(name: &[u8]) -> bool {
    let folders = memchr::memrchr(b'/', name).map_or(&[][..], |end| &name[..end]);
    folders.contains(&b'.')
}

fn status(code: u16) -> ScriptTarget {
    ScriptTarget::Status(Status::new(code).expect("a status of three digits"))
}

/// Returns true if a segment begins with a dot, except `/.well-known/` (RFC 8615): `/.git`,
/// `/.env`.
fn is_hidden(path: &[u8]) -> bool {
    let rest = path.strip_prefix(b"/.well-known").filter(|rest| rest.starts_with(b"/"));
    memchr::memmem::find(rest.unwrap_or(path), b"/.").is_some()
}

/// The ends of the segments of `path`.
fn segment_ends(path: &[u8]) -> impl Iterator<Item = usize> {
    let inner = memchr::memchr_iter(b'/', path).filter(|at| *at > 0);
    inner.chain(std::iter::once(path.len()))
}

fn segments(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    path.split(|b| *b == b'/').filter(|segment| !segment.is_empty())
}

#[cfg(test)]
mod tests;
