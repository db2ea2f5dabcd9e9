//! Database in MaxMind's format, shared by the programs that use it. A lookup never reads a file.

use std::fmt;
use std::net::IpAddr;
use std::sync::{Arc, Weak};

use bytes::Bytes;
use maxminddb::{LookupResult, MaxMindDbError, PathElement, Reader};
use parking_lot::Mutex;
use serde::de::{self, Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};

use crate::tag::Tag;
use crate::text::codec;

/// Limit on a path in bytes, exclusive, as in Varnish's VMOD.
const PATH_BYTES: usize = 100;

/// Databases in use, so that equal ones are stored once.
#[derive(Debug, Default)]
pub(crate) struct Databases(Mutex<Vec<Weak<Database>>>);

impl Databases {
    /// The database with these bytes, if a program uses it.
    pub(crate) fn find(&self, bytes: &[u8]) -> Option<Arc<Database>> {
        self.0.lock().iter().filter_map(Weak::upgrade).find(|own| own.bytes == bytes)
    }

    /// Number of databases in use.
    #[cfg(test)]
    pub(crate) fn held(&self) -> usize {
        self.0.lock().iter().filter_map(Weak::upgrade).count()
    }

    /// Adds a database that a program uses.
    pub(crate) fn add(&self, database: &Arc<Database>) {
        let mut all = self.0.lock();
        all.retain(|own| own.strong_count() > 0);
        all.push(Arc::downgrade(database));
    }
}

/// A database in memory.
pub(crate) struct Database {
    bytes: Bytes,
    reader: Reader<Bytes>,
}

impl fmt::Debug for Database {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Database").field("bytes", &self.bytes.len()).finish_non_exhaustive()
    }
}

/// Returns true if `file` is a database; if so, `path` is looked up in it.
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) fn look(file: Bytes, path: &str) -> bool {
    let Ok(database) = Database::read(file) else { return false };
    for ip in [IpAddr::from([192, 0, 2, 7]), IpAddr::from([0xff; 16])] {
        // The result does not matter.
        let _ = database.lookup(path.as_bytes(), Some(ip));
    }
    true
}

/// Reason why a lookup gives no string, and its log line.
pub(crate) struct LookupFailure {
    pub(crate) tag: Tag,
    pub(crate) why: String,
}

impl LookupFailure {
    fn fault(why: impl Into<String>) -> Self {
        Self { tag: Tag::Error, why: why.into() }
    }

    fn nothing(why: impl Into<String>) -> Self {
        Self { tag: Tag::Debug, why: why.into() }
    }
}

impl Database {
    /// Parses a database.
    ///
    /// # Errors
    /// The reason why the bytes are no database.
    pub(crate) fn read(bytes: Bytes) -> Result<Self, String> {
        let reader = Reader::from_source(bytes.clone()).map_err(|error| error.to_string())?;
        Ok(Self { bytes, reader })
    }

    /// The value under `path` for an address.
    pub(crate) fn lookup(&self, path: &[u8], ip: Option<IpAddr>) -> Result<String, LookupFailure> {
        let written = String::from_utf8_lossy(path);
        if path.is_empty() || path.len() >= PATH_BYTES {
            return Err(LookupFailure::fault(format!("invalid or missing path ({written})")));
        }
        let ip = ip.ok_or_else(|| LookupFailure::fault("invalid or missing address"))?;
        let found =
            self.reader.lookup(ip).map_err(|error| LookupFailure::fault(error.to_string()))?;
        if !found.has_data() {
            return Err(LookupFailure::nothing(format!("no entry for this address ({ip})")));
        }
        match at(&found, &written) {
            Ok(Some(Node::Text(text))) => Ok(text),
            Ok(Some(Node::Map | Node::Array)) => {
                Err(LookupFailure::fault(format!("no single value for this path ({written})")))
            }
            // A name in place of an index, or a path beyond a value.
            Ok(None) | Err(MaxMindDbError::Decoding { .. }) => {
                Err(LookupFailure::nothing(format!("no data for this path ({written})")))
            }
            Err(error) => Err(LookupFailure::fault(error.to_string())),
        }
    }
}

/// The node under `path`.
fn at(found: &LookupResult<'_, Bytes>, path: &str) -> Result<Option<Node>, MaxMindDbError> {
    let mut elements = Vec::new();
    for part in path.split('/').filter(|part| !part.is_empty()) {
        let element = match part.parse::<isize>() {
            // The meaning of a number depends on the node it is in.
            Ok(number) => match found.decode_path(&elements)? {
                Some(Node::Array) if number < 0 => {
                    PathElement::IndexFromEnd(number.unsigned_abs() - 1)
                }
                Some(Node::Array) => PathElement::Index(number.unsigned_abs()),
                _ => PathElement::Key(part),
            },
            Err(_) => PathElement::Key(part),
        };
        elements.push(element);
    }
    found.decode_path(&elements)
}

/// A node of a database.
enum Node {
    Map,
    Array,
    /// A value as a string.
    Text(String),
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NodeVisitor)
    }
}

struct NodeVisitor;

impl<'de> Visitor<'de> for NodeVisitor {
    type Value = Node;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_map<A: MapAccess<'de>>(self, _: A) -> Result<Node, A::Error> {
        Ok(Node::Map)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, _: A) -> Result<Node, A::Error> {
        Ok(Node::Array)
    }

    fn visit_bool<E: de::Error>(self, truth: bool) -> Result<Node, E> {
        Ok(Node::Text(truth.to_string()))
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<Node, E> {
        Ok(Node::Text(number.to_string()))
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<Node, E> {
        Ok(Node::Text(number.to_string()))
    }

    fn visit_u128<E: de::Error>(self, number: u128) -> Result<Node, E> {
        Ok(Node::Text(number.to_string()))
    }

    fn visit_f64<E: de::Error>(self, number: f64) -> Result<Node, E> {
        Ok(Node::Text(format!("{number:.6}")))
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Node, E> {
        // A string in VCL ends at a zero byte.
        Ok(Node::Text(text.split('\0').next().unwrap_or_default().to_owned()))
    }

    fn visit_bytes<E: de::Error>(self, bytes: &[u8]) -> Result<Node, E> {
        let digits = codec::encode("HEX", false, bytes);
        Ok(Node::Text(String::from_utf8_lossy(&digits).into_owned()))
    }
}
