//! VMOD `blob`: blobs and their text encodings. Malformed text fails, and is never decoded in part.

use std::any::Any;
use std::sync::Arc;

use bytes::Bytes;

use crate::failure::ProgramFailure;
use crate::state::ctx::Ctx;
use crate::state::program::Object;
use crate::state::value::Value;
use crate::sub::Subs;
use crate::text::codec;
use crate::types::Type;
use crate::vmod::{ArgumentType, Class, Function, Method, Module, Parameter, ParameterDefault};
use crate::vmods::args::{Args, enumeration, number, owned, required_parameter, this};

/// The module.
pub static MODULE: Module = Module {
    name: "blob",
    about: "Binary data (BLOB) and its text encodings. The encodings are `IDENTITY` (the bytes \
            themselves, up to the first zero byte), `BASE64`, `BASE64URL`, `BASE64URLNOPAD`, \
            `BASE64CF`, `HEX` and `URL` (percent-encoding). `BASE64CF` has `-`, `~` and `_` for \
            `+`, `/` and `=`. `case` is the letter case of hexadecimal digits; for other encodings \
            it must be `DEFAULT`. Text that cannot be decoded is a failure.",
    functions: FUNCTIONS,
    classes: &[CLASS],
    refused: &[],
};

const CODES: &[&str] =
    &["IDENTITY", "BASE64", "BASE64URL", "BASE64URLNOPAD", "BASE64CF", "HEX", "URL"];
const CASES: &[&str] = &["LOWER", "UPPER", "DEFAULT"];

const DECODING: Parameter = enumeration("decoding", CODES, "IDENTITY");
const ENCODING: Parameter = enumeration("encoding", CODES, "IDENTITY");
const CASE: Parameter = enumeration("case", CASES, "DEFAULT");
const LENGTH: Parameter = number("length", Type::Int, 0.0);
const ENCODED: Parameter = required_parameter("encoded", Type::String);

const FUNCTIONS: &[Function] = &[
    Function {
        name: "decode",
        about: "Decodes a text, or only its first `length` bytes.",
        returns: Type::Blob,
        params: &[DECODING, LENGTH, ENCODED],
        from: Subs::ALL,
        call: |_, args| Ok(Value::Blob(Some(decode(args, 0, 1, 2)?))),
    },
    Function {
        name: "encode",
        about: "Encodes a blob as text.",
        returns: Type::String,
        params: &[ENCODING, CASE, required_parameter("blob", Type::Blob)],
        from: Subs::ALL,
        call: |_, args| encode(args.enum_value(0), args.enum_value(1), args.blob(2)),
    },
    Function {
        name: "transcode",
        about: "Decodes a text and encodes the result again.",
        returns: Type::String,
        params: &[DECODING, ENCODING, CASE, LENGTH, ENCODED],
        from: Subs::ALL,
        call: |_, args| {
            encode(args.enum_value(1), args.enum_value(2), Some(&decode(args, 0, 3, 4)?))
        },
    },
    Function {
        name: "same",
        about: "Whether both are the same blob, or both are empty.",
        returns: Type::Bool,
        params: TWO,
        from: Subs::ALL,
        call: |_, args| {
            let (a, b) = two(args);
            Ok(Value::Bool(a.len() == b.len() && (a.is_empty() || a.as_ptr() == b.as_ptr())))
        },
    },
    Function {
        name: "equal",
        about: "Whether both have the same bytes.",
        returns: Type::Bool,
        params: TWO,
        from: Subs::ALL,
        call: |_, args| {
            let (a, b) = two(args);
            Ok(Value::Bool(a == b))
        },
    },
    Function {
        name: "length",
        about: "Number of bytes in the blob.",
        returns: Type::Int,
        params: &[required_parameter("", Type::Blob)],
        from: Subs::ALL,
        call: |_, args| Ok(Value::Int(args.blob(0).map_or(0, |blob| blob.len() as i64))),
    },
    Function {
        name: "sub",
        about: "Returns `length` bytes of a blob, starting at `offset`. Fails if the blob is empty \
                or too short.",
        returns: Type::Blob,
        params: &[
            required_parameter("", Type::Blob),
            required_parameter("length", Type::Bytes),
            Parameter {
                name: "offset",
                kind: ArgumentType::Of(Type::Bytes),
                default: Some(ParameterDefault::Number(0.0)),
            },
        ],
        from: Subs::ALL,
        call: part,
    },
];

const TWO: &[Parameter] = &[required_parameter("", Type::Blob), required_parameter("", Type::Blob)];

const CLASS: Class = Class {
    name: "blob",
    about: "A constant blob, decoded once.",
    params: &[DECODING, ENCODED],
    construct: |_, _, args| {
        let decoding = args.enum_value(0).unwrap_or("IDENTITY");
        let bytes = codec::decode(decoding, args.bytes(1)).ok_or_else(|| illegal(args.bytes(1)))?;
        Ok(Arc::new(Constant(bytes.into())))
    },
    methods: &[
        Method {
            name: "get",
            about: "The blob.",
            returns: Type::Blob,
            params: &[],
            from: Subs::ALL,
            call: |_, object, _| Ok(Value::Blob(Some(this::<Constant>(object)?.0.clone()))),
        },
        Method {
            name: "encode",
            about: "Encodes the blob as text.",
            returns: Type::String,
            params: &[ENCODING, CASE],
            from: Subs::ALL,
            call: |_, object, args| {
                encode(args.enum_value(0), args.enum_value(1), Some(&this::<Constant>(object)?.0))
            },
        },
    ],
};

/// A constant blob object.
struct Constant(Bytes);

impl Object for Constant {
    fn as_any(&self) -> &dyn Any {
        self
    }
}

fn two(args: &[Value]) -> (&[u8], &[u8]) {
    (args.blob(0).map_or(&[], |blob| blob), args.blob(1).map_or(&[], |blob| blob))
}

fn illegal(text: &[u8]) -> ProgramFailure {
    let beginning = text.get(..32).unwrap_or(text).escape_ascii();
    ProgramFailure::new(format!(
        "vmod blob error: cannot decode, illegal encoding beginning with \"{beginning}\""
    ))
}

fn decode(
    args: &[Value],
    code: usize,
    length: usize,
    text: usize,
) -> Result<Bytes, ProgramFailure> {
    let mut text = args.bytes(text);
    if let Some(length) = args.int(length).and_then(|n| usize::try_from(n).ok())
        && length > 0
    {
        text = text.get(..length).unwrap_or(text);
    }
    let decoded = codec::decode(args.enum_value(code).unwrap_or("IDENTITY"), text);
    decoded.map(Bytes::from).ok_or_else(|| illegal(text))
}

fn encode(
    code: Option<&'static str>,
    case: Option<&'static str>,
    blob: Option<&Bytes>,
) -> Result<Value, ProgramFailure> {
    let (code, case) = (code.unwrap_or("IDENTITY"), case.unwrap_or("DEFAULT"));
    if case != "DEFAULT" && !matches!(code, "HEX" | "URL") {
        let why = format!("vmod blob error: case {case} is illegal with encoding {code}");
        return Err(ProgramFailure::new(why));
    }
    Ok(owned(codec::encode(code, case == "UPPER", blob.map_or(&[], |blob| blob))))
}

fn part(_: &mut Ctx<'_>, args: &[Value]) -> Result<Value, ProgramFailure> {
    let Some(blob) = args.blob(0).filter(|blob| !blob.is_empty()) else {
        return Err(ProgramFailure::new("vmod blob error: blob is empty in blob.sub()"));
    };
    let (length, offset) = (args.int(1).unwrap_or(0), args.int(2).unwrap_or(0));
    let from = usize::try_from(offset).ok();
    let end = from.zip(usize::try_from(length).ok()).and_then(|(from, n)| from.checked_add(n));
    match (from, end) {
        (Some(from), Some(end)) if end <= blob.len() => {
            Ok(Value::Blob(Some(blob.slice(from..end))))
        }
        _ => Err(ProgramFailure::new(format!(
            "vmod blob error: size {length} from offset {offset} requires more bytes than blob \
             length {} in blob.sub()",
            blob.len()
        ))),
    }
}
