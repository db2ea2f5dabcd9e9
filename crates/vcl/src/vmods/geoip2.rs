//! `geoip2`: what a database in MaxMind's format says of an address.
//!
//! A database is read once, while its program starts, and is then in memory for as long as the
//! program is loaded; programs that read the same bytes share them. Nothing here reads a file while
//! a request waits.

#[cfg(test)]
mod tests;
#[cfg(test)]
mod writer;

use std::any::Any;
use std::fmt;
use std::net::IpAddr;
use std::sync::{Arc, Weak};

use base::Limit;
use bytes::Bytes;
use maxminddb::{LookupResult, MaxMindDbError, PathElement, Reader};
use parking_lot::Mutex;
use serde::de::{self, Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};

use crate::ctx::{Ctx, Tag};
use crate::sub::Subs;
use crate::types::Type;
use crate::value::{Failure, Value};
use crate::vmod::{Class, Method, Module, Object};
use crate::vmods::args::{Args, must, owned, this};
use crate::vmods::blob::codec;

/// The module.
pub static MODULE: Module = Module {
    name: "geoip2",
    about: "What a database in MaxMind's format (GeoIP2, GeoLite2 and others) says of an address.",
    functions: &[],
    classes: &[CLASS],
    refused: &[],
};

const CLASS: Class = Class {
    name: "geoip2",
    about: "A database, read from a file while the program is loaded, and not again: a newer file \
            counts for programs that are loaded later. The daemon's user must be able to read it. \
            A file that is not there, is none of this format or is larger than the limit \
            `geoip_bytes` is an error, and the program is not loaded. It takes memory as large as \
            the file; programs with the same database share it.",
    params: &[must("filename", Type::String)],
    construct: |ctx, _, args| {
        let database = open(ctx, args.bytes(0)).map_err(|why| {
            let file = String::from_utf8_lossy(args.bytes(0));
            Failure::new(format!("geoip2.geoip2: {file}: {why}"))
        })?;
        Ok(Arc::new(Geoip2(database)))
    },
    methods: &[Method {
        name: "lookup",
        about: "What stands under `path` for this address: names of maps and numbers of arrays, \
                with slashes between them (`country/names/en`, `subdivisions/0/iso_code`, and \
                `subdivisions/-1/iso_code` for the last one). A number is written in decimals (a \
                floating one with six), a truth as `true` or `false`, bytes in hexadecimal. No \
                string where there is nothing, where the path leads to a map or an array, and for \
                a path of 100 bytes or more; the log says why.",
        returns: Type::String,
        params: &[must("path", Type::String), must("addr", Type::Ip)],
        from: Subs::ALL,
        call: |ctx, object, args| {
            let database = &this::<Geoip2>(object)?.0;
            match database.lookup(args.bytes(0), args.ip(1).map(|addr| addr.ip())) {
                Ok(text) => Ok(owned(text)),
                Err(Missing { tag, why }) => {
                    ctx.world.log(tag, format!("geoip2.lookup: {why}").as_bytes());
                    Ok(Value::String(None))
                }
            }
        },
    }],
};

/// Paths are shorter than so many bytes, as in Varnish's module.
const PATH_BYTES: usize = 100;

struct Geoip2(Arc<Database>);

impl Object for Geoip2 {
    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// Those that programs have, so that equal ones are there once.
#[derive(Debug, Default)]
pub(crate) struct Databases(Mutex<Vec<Weak<Database>>>);

impl Databases {
    /// The one with these bytes, if a program has it.
    fn find(&self, bytes: &[u8]) -> Option<Arc<Database>> {
        self.0.lock().iter().filter_map(Weak::upgrade).find(|own| own.bytes == bytes)
    }

    fn add(&self, database: &Arc<Database>) {
        let mut all = self.0.lock();
        all.retain(|own| own.strong_count() > 0);
        all.push(Arc::downgrade(database));
    }
}

pub(crate) struct Database {
    bytes: Bytes,
    reader: Reader<Bytes>,
}

impl fmt::Debug for Database {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Database").field("bytes", &self.bytes.len()).finish_non_exhaustive()
    }
}

/// Reads the database in `file`, or finds it.
fn open(ctx: &Ctx<'_>, file: &[u8]) -> Result<Arc<Database>, String> {
    let shared = ctx.world.shared();
    let file = str::from_utf8(file).map_err(|_| "no file has this name".to_owned())?;
    let most = shared.geoip_bytes();
    let bytes = ctx.world.read(file, most).map_err(|error| match error.kind() {
        std::io::ErrorKind::FileTooLarge => {
            ctx.world.limit(Limit::GeoipBytes);
            format!("it has more than {most} bytes (geoip_bytes)")
        }
        _ => error.to_string(),
    })?;
    if let Some(known) = shared.databases.find(&bytes) {
        return Ok(known);
    }
    let reader = Reader::from_source(bytes.clone()).map_err(|error| error.to_string())?;
    let database = Arc::new(Database { bytes, reader });
    shared.databases.add(&database);
    Ok(database)
}

/// Returns true if a file is a database. If so, a path is looked for in it.
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) fn look(file: Bytes, path: &str) -> bool {
    let Ok(reader) = Reader::from_source(file.clone()) else { return false };
    let database = Database { bytes: file, reader };
    for ip in [IpAddr::from([192, 0, 2, 7]), IpAddr::from([0xff; 16])] {
        // Whether something is found does not matter.
        let _ = database.lookup(path.as_bytes(), Some(ip));
    }
    true
}

/// Why there is no string, and how that is logged.
struct Missing {
    tag: Tag,
    why: String,
}

impl Missing {
    fn fault(why: impl Into<String>) -> Self {
        Self { tag: Tag::Error, why: why.into() }
    }

    fn nothing(why: impl Into<String>) -> Self {
        Self { tag: Tag::Debug, why: why.into() }
    }
}

impl Database {
    fn lookup(&self, path: &[u8], ip: Option<IpAddr>) -> Result<String, Missing> {
        let written = String::from_utf8_lossy(path);
        if path.is_empty() || path.len() >= PATH_BYTES {
            return Err(Missing::fault(format!("invalid or missing path ({written})")));
        }
        let ip = ip.ok_or_else(|| Missing::fault("invalid or missing address"))?;
        let found = self.reader.lookup(ip).map_err(|error| Missing::fault(error.to_string()))?;
        if !found.has_data() {
            return Err(Missing::nothing(format!("no entry for this address ({ip})")));
        }
        match at(&found, &written) {
            Ok(Some(Node::Text(text))) => Ok(text),
            Ok(Some(Node::Map | Node::Array)) => {
                Err(Missing::fault(format!("no single value for this path ({written})")))
            }
            // A name where an array is, or more path where a value is.
            Ok(None) | Err(MaxMindDbError::Decoding { .. }) => {
                Err(Missing::nothing(format!("no data for this path ({written})")))
            }
            Err(error) => Err(Missing::fault(error.to_string())),
        }
    }
}

/// The node under `path`.
fn at(found: &LookupResult<'_, Bytes>, path: &str) -> Result<Option<Node>, MaxMindDbError> {
    let mut elements = Vec::new();
    for part in path.split('/').filter(|part| !part.is_empty()) {
        let element = match part.parse::<isize>() {
            // What a number means says what it stands in.
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
    /// A value, as a string.
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
        // A string of VCL ends at a zero byte.
        Ok(Node::Text(text.split('\0').next().unwrap_or_default().to_owned()))
    }

    fn visit_bytes<E: de::Error>(self, bytes: &[u8]) -> Result<Node, E> {
        let digits = codec::encode("HEX", false, bytes);
        Ok(Node::Text(String::from_utf8_lossy(&digits).into_owned()))
    }
}
