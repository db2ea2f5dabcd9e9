//! VMOD `digest`: hashes, keyed hashes and base64, byte for byte as in libvmod-digest. Time is
//! linear in the input. Keys are never stored, and `==` does not compare in constant time.

mod base64;
mod boxes;
mod hash;
mod haval;
mod snefru;
#[cfg(test)]
mod tests;

use crate::failure::ProgramFailure;
use crate::state::value::Value;
use crate::sub::Subs;
use crate::types::Type;
use crate::vmod::{Call, Function, Module, Parameter};
use crate::vmods::args::{Args, owned, required_parameter};
use base64::Base64Variant;

/// The module.
pub static MODULE: Module = Module {
    name: "digest",
    about: "Hashes, keyed hashes (HMAC) and base64. A missing string counts as empty. Hashes are \
            hexadecimal, in lower case.",
    functions: FUNCTIONS,
    classes: &[],
    refused: &[],
};

/// The result of `digest.version`.
const VERSION: &str = "1.0.2";

const ONE: &[Parameter] = &[required_parameter("", Type::String)];
const KEYED: &[Parameter] =
    &[required_parameter("key", Type::String), required_parameter("message", Type::String)];

const fn function(
    name: &'static str,
    about: &'static str,
    params: &'static [Parameter],
    call: Call,
) -> Function {
    Function { name, about, returns: Type::String, params, from: Subs::ALL, call }
}

const fn hashing(name: &'static str, about: &'static str, call: Call) -> Function {
    function(name, about, ONE, call)
}

const HMAC: &str =
    "The HMAC of `message`, as `0x` and hexadecimal digits. No string without a key.";
const TEXT: &str = "Encodes the bytes as text.";
const TEXT_OF_HEX: &str = "Encodes bytes that are given in hexadecimal, with or without `0x`. A \
                           character that is not a digit counts as 0. The last of an odd number of \
                           digits is ignored.";
const BYTES: &str = "Decodes a text, up to the first zero byte. Padding is optional, and may be \
                     anywhere. Fails on characters outside the alphabet.";
const BYTES_NO_PADDING: &str = "Decodes a text without padding, up to the first zero byte. Fails \
                                on characters outside the alphabet.";

const FUNCTIONS: &[Function] = &[
    function("hmac_sha256", HMAC, KEYED, |_, args| keyed::<hash::HmacSha256>(args)),
    function("hmac_sha1", HMAC, KEYED, |_, args| keyed::<hash::HmacSha1>(args)),
    function("hmac_md5", HMAC, KEYED, |_, args| keyed::<hash::HmacMd5>(args)),
    function("base64", TEXT, ONE, |_, args| encode(Base64Variant::STANDARD, args)),
    function("base64_hex", TEXT_OF_HEX, ONE, |_, args| encode_hex(Base64Variant::STANDARD, args)),
    function("base64_decode", BYTES, ONE, |_, args| decode(Base64Variant::STANDARD, args)),
    function("base64url", TEXT, ONE, |_, args| encode(Base64Variant::URL, args)),
    function("base64url_hex", TEXT_OF_HEX, ONE, |_, args| encode_hex(Base64Variant::URL, args)),
    function("base64url_decode", BYTES, ONE, |_, args| decode(Base64Variant::URL, args)),
    function("base64url_nopad", TEXT, ONE, |_, args| encode(Base64Variant::URL_NO_PADDING, args)),
    function("base64url_nopad_hex", TEXT_OF_HEX, ONE, |_, args| {
        encode_hex(Base64Variant::URL_NO_PADDING, args)
    }),
    function("base64url_nopad_decode", BYTES_NO_PADDING, ONE, |_, args| {
        decode(Base64Variant::URL_NO_PADDING, args)
    }),
    hashing("hash_sha1", "The string's SHA-1.", |_, args| hashed(args, hash::of::<sha1::Sha1>)),
    hashing("hash_sha224", "The string's SHA-224.", |_, args| {
        hashed(args, hash::of::<sha2::Sha224>)
    }),
    hashing("hash_sha256", "The string's SHA-256.", |_, args| {
        hashed(args, hash::of::<sha2::Sha256>)
    }),
    hashing("hash_sha384", "The string's SHA-384.", |_, args| {
        hashed(args, hash::of::<sha2::Sha384>)
    }),
    hashing("hash_sha512", "The string's SHA-512.", |_, args| {
        hashed(args, hash::of::<sha2::Sha512>)
    }),
    hashing(
        "hash_gost",
        "GOST R 34.11-94, with the S-boxes of the standard's example.",
        |_, args| hashed(args, hash::of::<gost94::Gost94Test>),
    ),
    hashing("hash_md2", "The string's MD2.", |_, args| hashed(args, hash::of::<md2::Md2>)),
    hashing("hash_md4", "The string's MD4.", |_, args| hashed(args, hash::of::<md4::Md4>)),
    hashing("hash_md5", "The string's MD5.", |_, args| hashed(args, hash::of::<md5::Md5>)),
    hashing("hash_crc32", "CRC-32 as in bzip2, lowest byte first.", |_, args| {
        hashed(args, hash::crc32)
    }),
    hashing("hash_crc32b", "CRC-32 as in gzip, lowest byte first.", |_, args| {
        hashed(args, hash::crc32b)
    }),
    hashing("hash_adler32", "Adler-32, lowest byte first.", |_, args| hashed(args, hash::adler32)),
    hashing("hash_haval128", "HAVAL, 3 passes.", |_, args| hashed(args, haval::hash::<4>)),
    hashing("hash_haval160", "HAVAL, 3 passes.", |_, args| hashed(args, haval::hash::<5>)),
    hashing("hash_haval192", "HAVAL, 3 passes.", |_, args| hashed(args, haval::hash::<6>)),
    hashing("hash_haval224", "HAVAL, 3 passes.", |_, args| hashed(args, haval::hash::<7>)),
    hashing("hash_haval256", "HAVAL, 3 passes.", |_, args| hashed(args, haval::hash::<8>)),
    hashing("hash_ripemd128", "The string's RIPEMD-128.", |_, args| {
        hashed(args, hash::of::<ripemd::Ripemd128>)
    }),
    hashing("hash_ripemd160", "The string's RIPEMD-160.", |_, args| {
        hashed(args, hash::of::<ripemd::Ripemd160>)
    }),
    hashing("hash_ripemd256", "The string's RIPEMD-256.", |_, args| {
        hashed(args, hash::of::<ripemd::Ripemd256>)
    }),
    hashing("hash_ripemd320", "The string's RIPEMD-320.", |_, args| {
        hashed(args, hash::of::<ripemd::Ripemd320>)
    }),
    hashing("hash_tiger", "Tiger, in the notation of its paper.", |_, args| {
        hashed(args, hash::tiger)
    }),
    hashing("hash_tiger128", "The first 128 bits of Tiger.", |_, args| {
        hashed(args, hash::tiger_cut::<16>)
    }),
    hashing("hash_tiger160", "The first 160 bits of Tiger.", |_, args| {
        hashed(args, hash::tiger_cut::<20>)
    }),
    hashing("hash_snefru128", "Snefru, 8 passes.", |_, args| hashed(args, snefru::hash::<4>)),
    hashing("hash_snefru256", "Snefru, 8 passes.", |_, args| hashed(args, snefru::hash::<8>)),
    hashing("hash_whirlpool", "The string's Whirlpool.", |_, args| {
        hashed(args, hash::of::<whirlpool::Whirlpool>)
    }),
    function(
        "version",
        "The version of the original module that Larder follows: `1.0.2`.",
        &[],
        |_, _| Ok(owned(VERSION)),
    ),
];

fn hashed(args: &[Value], hash: impl FnOnce(&[u8]) -> Vec<u8>) -> Result<Value, ProgramFailure> {
    Ok(owned(base64::hex("", &hash(args.bytes(0)))))
}

fn keyed<H: hash::KeyedHash>(args: &[Value]) -> Result<Value, ProgramFailure> {
    let Some(key) = args.string(0) else { return Ok(Value::String(None)) };
    Ok(owned(base64::hex("0x", &hash::keyed::<H>(key, args.bytes(1)))))
}

fn encode(code: Base64Variant, args: &[Value]) -> Result<Value, ProgramFailure> {
    Ok(owned(code.encode(args.bytes(0))))
}

fn encode_hex(code: Base64Variant, args: &[Value]) -> Result<Value, ProgramFailure> {
    Ok(owned(code.encode(&base64::unhex(args.bytes(0)))))
}

fn decode(code: Base64Variant, args: &[Value]) -> Result<Value, ProgramFailure> {
    match code.decode(args.bytes(0)) {
        Some(bytes) => Ok(owned(bytes)),
        // Varnish's process aborts here.
        None => Err(ProgramFailure::new("digest: not in base 64")),
    }
}
