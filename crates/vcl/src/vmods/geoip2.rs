//! VMOD `geoip2`: lookups of addresses in a database in MaxMind's format. The database is read once
//! when its program starts, and shared by programs with equal bytes. No file is read while a
//! request waits.

#[cfg(test)]
mod tests;

use std::any::Any;
use std::sync::Arc;

use base::Limit;

use crate::failure::ProgramFailure;
use crate::shared::database::{Database, LookupFailure};
use crate::state::ctx::Ctx;
use crate::state::program::Object;
use crate::state::value::Value;
use crate::sub::Subs;
use crate::types::Type;
use crate::vmod::{Class, Method, Module};
use crate::vmods::args::{Args, owned, required_parameter, this};

/// The module.
pub static MODULE: Module = Module {
    name: "geoip2",
    about: "Looks up addresses in a database in MaxMind's format (GeoIP2, GeoLite2 and others).",
    functions: &[],
    classes: &[CLASS],
    refused: &[],
};

const CLASS: Class = Class {
    name: "geoip2",
    about: "A database, read from a file once, while the program is loaded. A newer file is used \
            by programs loaded later. The daemon's user must be able to read it. If the file is \
            missing, is invalid or exceeds the limit `geoip_bytes`, the program is not loaded. The \
            database takes as much memory as the file; programs with the same database share it.",
    params: &[required_parameter("filename", Type::String)],
    construct: |ctx, _, args| {
        let database = open(ctx, args.bytes(0)).map_err(|why| {
            let file = String::from_utf8_lossy(args.bytes(0));
            ProgramFailure::new(format!("geoip2.geoip2: {file}: {why}"))
        })?;
        Ok(Arc::new(Geoip2(database)))
    },
    methods: &[Method {
        name: "lookup",
        about: "The value at `path` for this address. A path consists of map keys and array \
                indexes, separated by slashes. Examples are `country/names/en`, \
                `subdivisions/0/iso_code`, and `subdivisions/-1/iso_code` for the last element. \
                Numbers are decimal (floating-point with six decimals), booleans `true` or \
                `false`, and bytes hexadecimal. No string if there is no value, the path leads to \
                a map or an array, or it has 100 bytes or more. The log has the reason.",
        returns: Type::String,
        params: &[required_parameter("path", Type::String), required_parameter("addr", Type::Ip)],
        from: Subs::ALL,
        call: |ctx, object, args| {
            let database = &this::<Geoip2>(object)?.0;
            match database.lookup(args.bytes(0), args.ip(1).map(|addr| addr.ip())) {
                Ok(text) => Ok(owned(text)),
                Err(LookupFailure { tag, why }) => {
                    ctx.environment.log(tag, format!("geoip2.lookup: {why}").as_bytes());
                    Ok(Value::String(None))
                }
            }
        },
    }],
};

struct Geoip2(Arc<Database>);

impl Object for Geoip2 {
    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// The database in `file`, read or shared.
fn open(ctx: &Ctx<'_>, file: &[u8]) -> Result<Arc<Database>, String> {
    let shared = ctx.environment.shared();
    let file = str::from_utf8(file).map_err(|_| "no file has this name".to_owned())?;
    let most = shared.geoip_bytes();
    let bytes = ctx.environment.read(file, most).map_err(|error| match error.kind() {
        std::io::ErrorKind::FileTooLarge => {
            ctx.environment.limit(Limit::GeoipBytes);
            format!("it has more than {most} bytes (geoip_bytes)")
        }
        _ => error.to_string(),
    })?;
    if let Some(known) = shared.databases.find(&bytes) {
        return Ok(known);
    }
    let database = Arc::new(Database::read(bytes)?);
    shared.databases.add(&database);
    Ok(database)
}
