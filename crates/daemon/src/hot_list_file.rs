//! Hot list file: the hot lists of all sites, as they survive the process.
//!
//! Holds URLs and negotiation fields only. A file that cannot be read must never keep a daemon from
//! starting.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use flow::{HotUrl, VariantField, WarmUrl};
use serde::{Deserialize, Serialize};

use crate::url_request;

/// The folder below the state directory, and the file in it.
const FOLDER: &str = "warm";
const FILE: &str = "hot.json";
/// The version of the file's form.
const VERSION: u64 = 1;
/// The largest file that is read: a million URLs of some hundred bytes.
const BYTES_MAX: u64 = 512 << 20;

/// The hot URLs of a site.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SiteHotList {
    /// The site's name.
    pub(crate) site: Arc<str>,
    /// The hottest first.
    pub(crate) urls: Vec<HotUrl>,
}

/// The file.
#[derive(Deserialize, Serialize)]
struct SavedLists {
    version: u64,
    sites: Vec<SavedSite>,
}

/// The part of the file that all versions have.
#[derive(Deserialize)]
struct SavedVersion {
    version: u64,
}

/// A site in the file.
#[derive(Deserialize, Serialize)]
struct SavedSite {
    site: String,
    urls: Vec<SavedUrl>,
}

/// A URL in the file.
#[derive(Deserialize, Serialize)]
struct SavedUrl {
    url: String,
    score: f64,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    fields: Vec<SavedField>,
}

/// A field that selects a variant.
#[derive(Deserialize, Serialize)]
struct SavedField {
    name: String,
    value: Option<String>,
}

/// The folder of the file, in the service manager's state directory.
pub(crate) fn folder() -> PathBuf {
    let state = std::env::var_os("STATE_DIRECTORY");
    let first = state.as_ref().and_then(|all| std::env::split_paths(all).next());
    let first = first.filter(|folder| folder.is_absolute());
    first.unwrap_or_else(|| PathBuf::from("/var/lib/larder")).join(FOLDER)
}

/// Saves the lists in a folder, which is made if it is missing. The file is replaced as a whole.
///
/// # Errors
/// The reason why it cannot, with the file.
pub(crate) fn save(folder: &Path, lists: &[SiteHotList]) -> Result<(), String> {
    let file = folder.join(FILE);
    let saved = || -> io::Result<()> {
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        let new = file.with_extension("new");
        let mut written =
            OpenOptions::new().create(true).write(true).truncate(true).mode(0o600).open(&new)?;
        written.write_all(&encode(lists))?;
        written.sync_all()?;
        fs::rename(&new, &file)?;
        File::open(folder)?.sync_all()
    };
    saved().map_err(|error| format!("{}: {error}", file.display()))
}

/// The lists saved in a folder; none without a file.
///
/// # Errors
/// The reason why they cannot be read, with the file.
pub(crate) fn load(folder: &Path) -> Result<Vec<SiteHotList>, String> {
    let file = folder.join(FILE);
    let read = || -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        File::open(&file)?.take(BYTES_MAX).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    match read() {
        Ok(bytes) => decode(&bytes).map_err(|why| format!("{}: {why}", file.display())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(format!("{}: {error}", file.display())),
    }
}

/// The file's bytes. URLs that are no text are left out.
fn encode(lists: &[SiteHotList]) -> Vec<u8> {
    let sites = lists.iter().map(|list| SavedSite {
        site: list.site.to_string(),
        urls: list.urls.iter().filter_map(saved_url).collect(),
    });
    // Strings and numbers can always be written.
    serde_json::to_vec(&SavedLists { version: VERSION, sites: sites.collect() }).unwrap_or_default()
}

fn saved_url(HotUrl { url, score }: &HotUrl) -> Option<SavedUrl> {
    let text = |bytes: &[u8]| std::str::from_utf8(bytes).ok().map(str::to_owned);
    let scheme = if url.secure { "https" } else { "http" };
    let port = url.port.map_or_else(String::new, |port| format!(":{port}"));
    let whole = format!("{scheme}://{}{port}{}", text(&url.host)?, text(&url.target)?);
    let fields = url.fields.iter().map(|VariantField { name, value }| {
        let value = match value {
            Some(value) => Some(text(value)?),
            None => None,
        };
        Some(SavedField { name: text(name)?, value })
    });
    Some(SavedUrl { url: whole, score: *score, fields: fields.collect::<Option<_>>()? })
}

/// The lists in a file's bytes. Unusable URLs are left out.
///
/// # Errors
/// The reason why it is no file of this version.
fn decode(bytes: &[u8]) -> Result<Vec<SiteHotList>, String> {
    let damaged = |_| "it is damaged".to_owned();
    let SavedVersion { version } = serde_json::from_slice(bytes).map_err(damaged)?;
    if version != VERSION {
        return Err(format!("it is of version {version} and not read: this one writes {VERSION}"));
    }
    let saved: SavedLists = serde_json::from_slice(bytes).map_err(damaged)?;
    let lists = saved.sites.into_iter().map(|SavedSite { site, urls }| SiteHotList {
        site: site.into(),
        urls: urls.iter().filter_map(hot_url).collect(),
    });
    Ok(lists.collect())
}

fn hot_url(SavedUrl { url, score, fields }: &SavedUrl) -> Option<HotUrl> {
    let request = url_request::parse(url).ok()?;
    let values: Vec<(&[u8], Option<&[u8]>)> = fields
        .iter()
        .map(|field| (field.name.as_bytes(), field.value.as_deref().map(str::as_bytes)))
        .collect();
    let is_line = |value: &[u8]| !value.iter().any(|byte| matches!(byte, b'\r' | b'\n' | 0));
    let fits = values.iter().all(|(name, value)| is_line(name) && value.is_none_or(is_line));
    let url = WarmUrl::of_request(&request)?.with_values(&values)?;
    let score = Some(*score).filter(|score| fits && score.is_finite() && *score > 0.0)?;
    Some(HotUrl { url: Arc::new(url), score })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn list(paths: &[String]) -> SiteHotList {
        let urls = paths.iter().enumerate().map(|(at, path)| {
            let request = url_request::parse(&format!("https://a.example:8443/{path}"));
            let url = WarmUrl::of_request(&request.expect("a URL")).expect("it is short");
            let value = (at % 2 == 0).then_some(&b"de"[..]);
            let url = url.with_values(&[(b"accept-language", value)]).expect("it may be warmed");
            HotUrl { url: Arc::new(url), score: 0.5 + at as f64 }
        });
        SiteHotList { site: "a.example".into(), urls: urls.collect() }
    }

    #[test]
    fn it_is_kept_for_its_owner_alone_and_a_damaged_one_is_reported() {
        let root = std::env::temp_dir().join(format!("larder-hot-{}", std::process::id()));
        let folder = root.join("state").join(FOLDER);
        assert_eq!(load(&folder), Ok(Vec::new()));
        let lists = [list(&["a".to_owned(), "b?c".to_owned()])];
        save(&folder, &lists).expect("saved");
        assert_eq!(load(&folder).as_deref(), Ok(&lists[..]));
        assert_eq!(fs::read_dir(&folder).expect("a folder").count(), 1);
        fs::write(folder.join(FILE), b"[{").expect("written");
        assert!(load(&folder).expect_err("damaged").ends_with("hot.json: it is damaged"));
        fs::write(folder.join(FILE), br#"{"version":2,"lists":{}}"#).expect("written");
        let why = load(&folder).expect_err("of a later version");
        assert!(why.contains("hot.json: it is of version 2 and not read"), "{why}");
        fs::remove_dir_all(root).expect("removed");
    }

    #[test]
    fn fields_of_one_visitor_are_not_read() {
        let text = r#"{"version":1,"sites":[{"site":"a","urls":[
            {"url":"http://a/1","score":1.0,"fields":[{"name":"cookie","value":"s=1"}]},
            {"url":"http://a/2","score":1.0,"fields":[{"name":"accept","value":"a\r\nB: c"}]},
            {"url":"http://a/3","score":-1.0},
            {"url":"/4","score":1.0},
            {"url":"http://a/5","score":2.0,"fields":[{"name":"cookie","value":null}]}]}]}"#;
        let lists = decode(text.as_bytes()).expect("a file");
        let targets: Vec<_> = lists[0].urls.iter().map(|hot| hot.url.target.to_vec()).collect();
        assert_eq!(targets, [b"/5".to_vec()]);
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(paths in prop::collection::vec("[a-z0-9?=&/]{0,20}", 0..20)) {
            let lists = [list(&paths)];
            let read = decode(&encode(&lists));
            prop_assert_eq!(read.expect("it was just written"), lists);
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            _ = decode(&bytes);
        }
    }
}
