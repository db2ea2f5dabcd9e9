//! Root directory of files, and lookups below it. A lookup must never leave the root.

use std::ffi::OsStr;
use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;
use std::sync::Arc;

use rustix::fs::Stat;

use crate::config::{Config, PrecompressedFile};
use crate::hidden_names::is_dotted;
use crate::open_file::{HeadParts, Kind, OpenFile, kind};
use crate::path_lookup::{FileVariants, PathLookup};
use crate::path_open::{self, Depth, OpenFailure, WouldBlock};
use crate::types::is_compressible;

/// A directory whose files are served.
#[derive(Debug)]
pub struct Root {
    config: Config,
}

impl Root {
    /// The root that `config` describes. The directory is opened later: it may not exist yet.
    pub fn new(config: Config) -> Arc<Self> {
        Arc::new(Self { config })
    }

    /// Its settings.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Looks up `path`, the normal form of a request's path ([`message::path::normal_form`]).
    ///
    /// # Errors
    /// Only at [`Depth::Cached`], if the disk would have to be accessed.
    pub fn look(&self, path: &[u8], depth: Depth) -> Result<PathLookup, WouldBlock> {
        let Some(path) = self.below_root(path) else { return Ok(PathLookup::Missing) };
        if self.config.hide.hides(path) {
            return Ok(PathLookup::Missing);
        }
        match self.find(path, depth) {
            Ok(look) => Ok(look),
            Err(OpenFailure::WouldBlock) if depth == Depth::Cached => Err(WouldBlock),
            Err(OpenFailure::Forbidden | OpenFailure::Link) => Ok(PathLookup::Forbidden),
            Err(OpenFailure::Exhausted) => Ok(PathLookup::Exhausted),
            Err(OpenFailure::Missing | OpenFailure::WouldBlock) => Ok(PathLookup::Missing),
        }
    }

    /// The part of `path` to look up, from its slash on; `None` if it could leave the root. Such
    /// paths have no normal form and never get here; this is a second line of defence.
    fn below_root<'p>(&self, path: &'p [u8]) -> Option<&'p [u8]> {
        let rest = path.strip_prefix(self.config.strip.as_bytes())?;
        let inner = rest.strip_prefix(b"/")?;
        let inner = inner.strip_suffix(b"/").unwrap_or(inner);
        let sound = |name: &[u8]| !matches!(name, b"" | b"." | b"..") && !name.contains(&0);
        (inner.is_empty() || inner.split(|b| *b == b'/').all(sound)).then_some(rest)
    }

    fn find(&self, path: &[u8], depth: Depth) -> Result<PathLookup, OpenFailure> {
        let relative = path.strip_prefix(b"/").unwrap_or(path);
        let bare = relative.strip_suffix(b"/").unwrap_or(relative);
        let wants_directory = relative.is_empty() || bare.len() < relative.len();
        if wants_directory && !self.config.directories {
            return Ok(PathLookup::Missing);
        }
        let root = path_open::directory(&self.config.root, depth)?;
        let fd = self.open(&root, bare, depth)?;
        match kind(&fd) {
            Kind::File(stat) if !wants_directory => {
                self.page(&root, bare, fd, &stat, depth).map(PathLookup::Page)
            }
            Kind::Directory if !self.config.directories => Ok(PathLookup::Missing),
            Kind::Directory if !wants_directory => Ok(PathLookup::Slash),
            Kind::Directory => self.index(&root, bare, depth),
            Kind::File(_) | Kind::Other => Ok(PathLookup::Missing),
        }
    }

    /// The directory's index. There is no listing (nginx without `autoindex`: 403).
    fn index(
        &self,
        root: &OwnedFd,
        directory: &[u8],
        depth: Depth,
    ) -> Result<PathLookup, OpenFailure> {
        for name in &self.config.index {
            let path = match directory {
                b"" => name.clone().into_bytes(),
                _ => [directory, b"/", name.as_bytes()].concat(),
            };
            if self.is_hidden(&path) {
                continue;
            }
            let fd = match self.open(root, &path, depth) {
                Ok(fd) => fd,
                Err(OpenFailure::Missing) => continue,
                Err(other) => return Err(other),
            };
            if let Kind::File(stat) = kind(&fd) {
                return self.page(root, &path, fd, &stat, depth).map(PathLookup::Page);
            }
        }
        Ok(PathLookup::Forbidden)
    }

    fn is_hidden(&self, relative: &[u8]) -> bool {
        self.config.hide.hides(&[b"/", relative].concat())
    }

    /// Opens the file at `relative`, through links to targets in the root and the directories that
    /// settings add to it.
    fn open(&self, root: &OwnedFd, relative: &[u8], depth: Depth) -> Result<OwnedFd, OpenFailure> {
        match path_open::below(root, relative, depth) {
            Err(OpenFailure::Link) if depth == Depth::Cached => Err(OpenFailure::WouldBlock),
            Err(OpenFailure::Link) => self.open_linked(relative),
            opened => opened,
        }
    }

    /// Resolves the links first, checks the target, and opens it without following links, so that a
    /// link created meanwhile has no effect. A hidden file is hidden under every name.
    fn open_linked(&self, relative: &[u8]) -> Result<OwnedFd, OpenFailure> {
        let real = |path: PathBuf| fs::canonicalize(path).map_err(|_| OpenFailure::Missing);
        let root = real(self.config.root.clone())?;
        let found = real(root.join(OsStr::from_bytes(relative)))?;
        let linked = self.config.linked.iter().filter_map(|dir| fs::canonicalize(dir).ok());
        for place in std::iter::once(root).chain(linked) {
            let Ok(rest) = found.strip_prefix(&place) else { continue };
            let rest = rest.as_os_str().as_bytes();
            if self.is_hidden(rest) {
                return Err(OpenFailure::Missing);
            }
            let place = path_open::directory(&place, Depth::Full)?;
            return path_open::below(&place, rest, Depth::Full);
        }
        Err(OpenFailure::Forbidden)
    }

    fn page(
        &self,
        root: &OwnedFd,
        relative: &[u8],
        fd: OwnedFd,
        stat: &Stat,
        depth: Depth,
    ) -> Result<Arc<FileVariants>, OpenFailure> {
        let name = relative.rsplit(|b| *b == b'/').next().unwrap_or(relative);
        let essence = self.config.types.essence(name);
        let content_type = self.config.types.of(name);
        let rule = self.config.cache_control.iter().find(|rule| rule.files.selects(essence, name));
        let mut neighbours = Vec::new();
        if is_compressible(essence) {
            for wanted in &self.config.precompressed {
                if let Some((fd, stat)) = self.neighbour(root, relative, wanted, depth)? {
                    neighbours.push((wanted.coding, fd, stat));
                }
            }
        }
        let mut vary = self.config.vary.clone();
        // An outdated form may be current again by the next request.
        if !neighbours.is_empty() {
            vary.insert(0, "Accept-Encoding".to_owned());
        }
        let vary = vary.join(", ");
        let said = HeadParts {
            kind: &content_type,
            cache_control: rule.map(|rule| rule.value.as_str()),
            coding: None,
            vary: &vary,
        };
        let plain = OpenFile::new(fd, stat, said);
        let coded = neighbours.into_iter().map(|(coding, fd, stat)| {
            let said = HeadParts { coding: Some(coding.token()), ..said };
            (coding, Arc::new(OpenFile::new(fd, &stat, said)))
        });
        // A form that was compressed before the last change is outdated.
        let coded = coded.filter(|(_, opened)| !opened.is_older_than(&plain)).collect();
        Ok(Arc::new(FileVariants { plain: Arc::new(plain), coded }))
    }

    /// The precompressed form of `relative` that `wanted` names.
    fn neighbour(
        &self,
        root: &OwnedFd,
        relative: &[u8],
        wanted: &PrecompressedFile,
        depth: Depth,
    ) -> Result<Option<(OwnedFd, Stat)>, OpenFailure> {
        let name = [relative, wanted.suffix.as_bytes()].concat();
        match self.open(root, &name, depth) {
            Ok(fd) => match kind(&fd) {
                Kind::File(stat) => Ok(Some((fd, *stat))),
                Kind::Directory | Kind::Other => Ok(None),
            },
            Err(OpenFailure::WouldBlock) => Err(OpenFailure::WouldBlock),
            // The plain file is still available.
            Err(_) => Ok(None),
        }
    }

    /// Returns true if `path` may name a file that is served: it has a suffix, and no rule hides
    /// it. The check is cheap, so that paths of pages cost nothing more.
    pub fn may_be_file(&self, path: &[u8], scripts: &[String]) -> bool {
        let at = memchr::memrchr2(b'/', b'.', path);
        at.is_some_and(|at| path[at] == b'.')
            && !scripts.iter().any(|suffix| path.ends_with(suffix.as_bytes()))
            && !is_dotted(path)
    }
}

#[cfg(test)]
mod tests;
