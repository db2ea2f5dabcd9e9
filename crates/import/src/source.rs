//! Where configurations come from: a file with what it includes, what `nginx -T` prints, or a
//! folder of sites. This reads files; nothing else here does.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use crate::caddyfile;
use crate::error::Error;
use crate::glob;
use crate::lines;
use crate::parser::{Includes, Parser};
use crate::syntax::{Directive, Place};

/// Bytes of all files together: the largest known configurations, with a map of redirects, have a
/// few MiB.
const BYTES_MAX: usize = 32 << 20;

/// Files of a configuration.
const FILES_MAX: usize = 10_000;

/// Includes within each other.
const INCLUDES_MAX: usize = 32;

/// The line with which `nginx -T` begins a file.
const DUMP_MARK: &str = "# configuration file ";

/// Files that nginx's packages bring, whose settings are the default here: a copy of a
/// configuration often comes without them.
const STOCK: [&str; 8] = [
    "mime.types",
    "fastcgi_params",
    "fastcgi.conf",
    "fastcgi-php.conf",
    "proxy_params",
    "uwsgi_params",
    "scgi_params",
    "options-ssl-nginx.conf",
];

/// Programs whose configurations are translated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SourceKind {
    /// nginx.
    Nginx,
    /// Caddy, by its Caddyfile.
    Caddy,
    /// Squid as an accelerator.
    Squid,
    /// varnishd, by the flags of its service.
    Varnish,
}

/// A whole configuration.
#[derive(Clone, Debug)]
pub struct Source {
    /// The program that it is for.
    pub kind: SourceKind,
    /// Its directives, each `include` followed by what it includes.
    pub directives: Vec<Directive>,
    /// Number of all directives, those in blocks included.
    pub count: usize,
    /// Includes of files that are not there, and that nginx's packages bring.
    pub stock: Vec<usize>,
}

impl Source {
    /// A configuration of nginx.
    pub fn nginx(directives: Vec<Directive>) -> Self {
        let mut count = 0;
        directives.iter().for_each(|own| own.visit(&mut |_| count += 1));
        Self { kind: SourceKind::Nginx, directives, count, stock: Vec::new() }
    }

    fn read(directives: Vec<Directive>, reader: Reader) -> Self {
        Self { stock: reader.stock, ..Self::nginx(directives) }
    }

    /// A configuration of another program than nginx, if `text` is one.
    fn foreign(name: &str, text: &str) -> Result<Option<Self>, Error> {
        let kind = match foreign_kind(name, text) {
            None => return Ok(None),
            Some(Ok(kind)) => kind,
            Some(Err(server)) => return Err(Error::Foreign { file: name.to_owned(), server }),
        };
        if text.len() > BYTES_MAX {
            let place = Place { line: 1, column: 1 };
            let (what, most) = ("bytes", BYTES_MAX);
            return Err(Error::Limit { file: name.to_owned(), place, what, most });
        }
        let directives = match kind {
            SourceKind::Caddy => caddyfile::parse(name, text)?,
            SourceKind::Squid => lines::squid(name, text)?,
            SourceKind::Varnish | SourceKind::Nginx => lines::varnish(name, text)?,
        };
        Ok(Some(Self { kind, ..Self::nginx(directives) }))
    }
}

/// The kind of a configuration that is not nginx's; an error for that of a program whose
/// configurations are not translated.
fn foreign_kind(name: &str, text: &str) -> Option<Result<SourceKind, &'static str>> {
    let base = name.rsplit('/').next().unwrap_or(name);
    let has_flags = text.contains("DAEMON_OPTS") || text.contains("ExecStart");
    if has_flags && (text.contains("varnishd") || base.starts_with("varnish")) {
        return Some(Ok(SourceKind::Varnish));
    }
    if base == "Caddyfile" || base.ends_with(".caddyfile") {
        return Some(Ok(SourceKind::Caddy));
    }
    match config::foreign_server(text)?.0 {
        "nginx" => None,
        "Caddy" => Some(Ok(SourceKind::Caddy)),
        "Squid" => Some(Ok(SourceKind::Squid)),
        server => Some(Err(server)),
    }
}

/// Reads the configuration at `path`: a file, or a folder whose files are read in the order of
/// their names. Includes are relative to `prefix`, by default the folder of the file.
///
/// # Errors
/// A file that cannot be read, a fault of the grammar, an include that leads nowhere, or a limit.
pub fn read_path(path: &Path, prefix: Option<&Path>) -> Result<Source, Error> {
    let is_folder = path.is_dir();
    let own = if is_folder { path } else { path.parent().unwrap_or_else(|| Path::new("")) };
    let mut reader = Reader::new(Files::Disk, prefix.unwrap_or(own));
    let mut parser = Parser::default();
    let mut directives = Vec::new();
    if is_folder {
        for file in listed(path)? {
            directives.extend(reader.file(&mut parser, &file.to_string_lossy())?);
        }
    } else {
        let name = path.to_string_lossy();
        let text = reader.text(&name)?;
        if let Some(files) = dump(&text) {
            return read_dump(files, prefix);
        }
        if let Some(source) = Source::foreign(&name, &text)? {
            return Ok(source);
        }
        directives = reader.file(&mut parser, &name)?;
    }
    Ok(Source::read(directives, reader))
}

/// Reads a configuration from `text`, which `name` names: a file, or what `nginx -T` prints.
///
/// # Errors
/// As [`read_path`].
pub fn read_text(name: &str, text: &str, prefix: Option<&Path>) -> Result<Source, Error> {
    if let Some(files) = dump(text) {
        return read_dump(files, prefix);
    }
    if let Some(source) = Source::foreign(name, text)? {
        return Ok(source);
    }
    let mut reader = Reader::new(Files::Disk, prefix.unwrap_or_else(|| Path::new("")));
    reader.add_bytes(name, text.len())?;
    let mut parser = Parser::default();
    let directives = parser.file(&Arc::from(name), text, 1, &mut reader)?;
    Ok(Source::read(directives, reader))
}

fn read_dump(files: Vec<DumpedFile>, prefix: Option<&Path>) -> Result<Source, Error> {
    let main = files.first().map(|file| file.name.clone()).unwrap_or_default();
    let own = Path::new(&main).parent().unwrap_or_else(|| Path::new("")).to_owned();
    let texts = files.into_iter().map(|file| (file.name, file.text)).collect();
    let mut reader = Reader::new(Files::Dump(texts), prefix.unwrap_or(&own));
    let mut parser = Parser::default();
    let directives = reader.file(&mut parser, &main)?;
    Ok(Source::read(directives, reader))
}

/// The files of a folder that nginx would include by `*`: hidden ones are not among them.
fn listed(folder: &Path) -> Result<Vec<PathBuf>, Error> {
    let failed = |error: std::io::Error| Error::Read {
        file: folder.display().to_string(),
        why: error.to_string(),
    };
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_file() && !name.starts_with('.') && !name.ends_with('~') {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// A file in what `nginx -T` prints.
struct DumpedFile {
    name: String,
    text: String,
}

/// The files in what `nginx -T` prints; `None` for any other text.
fn dump(text: &str) -> Option<Vec<DumpedFile>> {
    let mut files: Vec<DumpedFile> = Vec::new();
    for line in text.split_inclusive('\n') {
        let mark = line.strip_prefix(DUMP_MARK).map(str::trim_end);
        if let Some(name) = mark.and_then(|rest| rest.strip_suffix(':')) {
            files.push(DumpedFile { name: name.to_owned(), text: String::new() });
        } else if let Some(file) = files.last_mut() {
            file.text.push_str(line);
        }
    }
    (!files.is_empty()).then_some(files)
}

/// Places that hold files.
enum Files {
    Disk,
    /// Names and texts.
    Dump(BTreeMap<String, String>),
}

struct Reader {
    files: Files,
    prefix: PathBuf,
    /// Files that are being read, the outermost first.
    open: Vec<String>,
    bytes: usize,
    count: usize,
    stock: Vec<usize>,
}

impl Reader {
    fn new(files: Files, prefix: &Path) -> Self {
        Self {
            files,
            prefix: prefix.to_owned(),
            open: Vec::new(),
            bytes: 0,
            count: 0,
            stock: Vec::new(),
        }
    }

    fn add_bytes(&mut self, name: &str, bytes: usize) -> Result<(), Error> {
        self.bytes += bytes;
        self.count += 1;
        let over = |what, most| Error::Limit {
            file: name.to_owned(),
            place: Place { line: 1, column: 1 },
            what,
            most,
        };
        match () {
            () if self.bytes > BYTES_MAX => Err(over("bytes in all files", BYTES_MAX)),
            () if self.count > FILES_MAX => Err(over("files", FILES_MAX)),
            () => Ok(()),
        }
    }

    fn text(&self, name: &str) -> Result<String, Error> {
        let failed = |why: String| Error::Read { file: name.to_owned(), why };
        match &self.files {
            Files::Dump(texts) => {
                let text = texts.get(name).cloned();
                text.ok_or_else(|| failed("this file is not in the dump".to_owned()))
            }
            Files::Disk => {
                let size =
                    std::fs::metadata(name).map_err(|error| failed(error.to_string()))?.len();
                if size > BYTES_MAX as u64 {
                    return Err(failed(format!("it has more than {BYTES_MAX} bytes")));
                }
                let bytes = std::fs::read(name).map_err(|error| failed(error.to_string()))?;
                Ok(String::from_utf8_lossy(&bytes).into_owned())
            }
        }
    }

    fn file(&mut self, parser: &mut Parser, name: &str) -> Result<Vec<Directive>, Error> {
        let text = self.text(name)?;
        self.add_bytes(name, text.len())?;
        self.open.push(name.to_owned());
        let directives = parser.file(&Arc::from(name), &text, 1, self);
        self.open.pop();
        directives
    }

    /// The files that a path of an `include` means; `None` if it names one that is not there.
    fn meant(&self, path: &str) -> Option<Vec<String>> {
        let full = lexical(&self.prefix.join(path)).to_string_lossy().into_owned();
        let is_pattern = full.contains(['*', '?', '[']);
        match &self.files {
            Files::Dump(texts) if is_pattern => {
                let found = texts.keys().filter(|name| glob::matches(&full, name));
                Some(found.cloned().collect())
            }
            Files::Dump(texts) => texts.contains_key(&full).then(|| vec![full]),
            Files::Disk if is_pattern => Some(glob::files(&full)),
            Files::Disk => Path::new(&full).is_file().then(|| vec![full]),
        }
    }
}

impl Includes for Reader {
    fn include(
        &mut self,
        directive: &Directive,
        parser: &mut Parser,
    ) -> Result<Vec<Directive>, Error> {
        let path = directive.arg(0);
        let failed = |why| Error::Include {
            file: directive.file.to_string(),
            place: directive.place,
            path: path.to_owned(),
            why,
        };
        if path.is_empty() {
            return Err(failed("expected a path behind it"));
        }
        if self.open.len() >= INCLUDES_MAX {
            return Err(failed("too many includes within each other"));
        }
        let name = path.rsplit('/').next().unwrap_or(path);
        if self.meant(path).is_none() && STOCK.contains(&name) {
            self.stock.push(directive.id);
            return Ok(Vec::new());
        }
        let files = self.meant(path).ok_or_else(|| failed("there is no such file"))?;
        let mut directives = Vec::new();
        for file in files {
            if self.open.contains(&file) || *directive.file == *file {
                return Err(failed("it includes itself"));
            }
            directives.extend(self.file(parser, &file)?);
        }
        Ok(directives)
    }
}

/// The path without `.` and `..`, as it is written.
fn lexical(path: &Path) -> PathBuf {
    let mut clean = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir if clean.file_name().is_some() => _ = clean.pop(),
            part => clean.push(part),
        }
    }
    clean
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dump_is_split_into_its_files() {
        let text = "nginx: fine\n# configuration file /etc/nginx/nginx.conf:\nuser a;\n\
                    include sites/*;\n\n# configuration file /etc/nginx/sites/b:\nb;\n\n\
                    # configuration file /etc/nginx/sites/a:\na;\n";
        let source = read_text("-", text, None).expect("well-formed");
        let names: Vec<_> = source.directives.iter().map(|d| d.name.as_str()).collect();
        assert_eq!(names, ["user", "include", "a", "b"]);
        let places: Vec<_> = source.directives.iter().map(Directive::location).collect();
        assert_eq!(places[3], "/etc/nginx/sites/b:1");
        assert_eq!(source.count, 4);
    }

    #[test]
    fn files_that_packages_bring_may_be_missing() {
        let source = read_text("-", "server { include snippets/fastcgi-php.conf; }", None);
        assert_eq!(source.expect("well-formed").stock, [1]);
    }

    #[test]
    fn configurations_of_other_programs_are_known() {
        for (name, text, kind) in [
            ("-", "a.test {\n  reverse_proxy localhost:1\n}\n", SourceKind::Caddy),
            ("/etc/caddy/Caddyfile", ":80\nrespond hi\n", SourceKind::Caddy),
            ("-", "http_port 80 accel\ncache_peer a parent 80 0 originserver\n", SourceKind::Squid),
            ("-", "[Service]\nExecStart=/usr/sbin/varnishd -a :80 -f /x\n", SourceKind::Varnish),
            ("/etc/default/varnish", "DAEMON_OPTS=\"-a :80\"\n", SourceKind::Varnish),
            ("-", "server { listen 80; }\n", SourceKind::Nginx),
        ] {
            assert_eq!(read_text(name, text, None).expect(text).kind, kind, "{text}");
        }
        let error = read_text("-", "frontend web\n  bind :80\n", None).expect_err("HAProxy");
        assert!(error.to_string().contains("HAProxy"), "{error}");
    }

    #[test]
    fn includes_in_a_circle_and_of_nothing_are_errors_with_places() {
        let fault = |text: &str| read_text("-", text, None).expect_err("a fault").to_string();
        let circle = "# configuration file /n/a:\n\ninclude b;\n# configuration file /n/b:\n\
                      include a;\n";
        assert_eq!(fault(circle), "/n/b:1:1: include a: it includes itself");
        let nothing = "# configuration file /n/a:\n x;\n include b;\n";
        assert_eq!(fault(nothing), "/n/a:2:2: include b: there is no such file");
        let many: String = (0..40)
            .map(|n| format!("# configuration file /n/{n}:\ninclude {};\n", n + 1))
            .collect();
        assert!(fault(&many).ends_with("too many includes within each other"), "{}", fault(&many));
    }
}
