//! Parameters of a shard director, and `shard_param`: sets of them that several directors share. A
//! set has defaults from `vcl_init`; a backend request's changes never outlive its task.

use std::any::Any;
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;

use crate::failure::ProgramFailure;
use crate::state::ctx::Ctx;
use crate::state::program::Object;
use crate::state::value::Value;
use crate::sub::{Sub, Subs, TaskSide};
use crate::types::Type;
use crate::vars;
use crate::vmod::{ArgumentType, Class, Method, Parameter, ParameterDefault};
use crate::vmods::args::{Args, optional_parameter, owned, this};
use crate::vmods::directors::ring;

/// Sources of a key.
pub(super) const BY: &[&str] = &["HASH", "URL", "KEY", "BLOB"];
/// Values of `healthy`: which backends are skipped.
pub(super) const HEALTHY: &[&str] = &["CHOSEN", "IGNORE", "ALL"];

/// Parameters of a choice; `None` for each one that was not given.
#[derive(Clone, Copy, Debug, std::default::Default)]
pub(super) struct ChoiceParams {
    by: Option<&'static str>,
    /// The key of `by=KEY` and `by=BLOB`.
    key: Option<u32>,
    alt: Option<i64>,
    warmup: Option<f64>,
    rampup: Option<bool>,
    healthy: Option<&'static str>,
}

impl ChoiceParams {
    /// The given parameters, completed by `defaults`.
    pub(super) fn or_defaults(self, defaults: Self) -> Self {
        // A key always goes with its source.
        let (by, key) =
            if self.by.is_some() { (self.by, self.key) } else { (defaults.by, defaults.key) };
        Self {
            by,
            key,
            alt: self.alt.or(defaults.alt),
            warmup: self.warmup.or(defaults.warmup),
            rampup: self.rampup.or(defaults.rampup),
            healthy: self.healthy.or(defaults.healthy),
        }
    }

    /// Reads the arguments from `by` to `healthy` at these positions: `by`, `key`, `key_blob`,
    /// `alt`, `warmup`, `rampup`, `healthy`.
    ///
    /// # Errors
    /// If arguments contradict each other, or one is out of range.
    pub(super) fn read(args: &[Value], at: [usize; 7]) -> Result<Self, String> {
        let [by, key, blob, alt, warmup, rampup, healthy] = at;
        let (number, bytes) = (args.int(key), args.blob(blob));
        let has_blob = matches!(args.get(blob), Some(Value::Blob(_)));
        let by = args.enum_value(by);
        let key = match (by.unwrap_or("HASH"), number, has_blob) {
            ("KEY", Some(number), false) => Some(
                u32::try_from(number)
                    .map_err(|_| format!("invalid key argument {number} with by=KEY"))?,
            ),
            ("BLOB", None, true) => {
                Some(first_bytes(bytes.ok_or("by=BLOB but no or empty key_blob")?)?)
            }
            ("KEY", None, _) => return Err("missing key argument with by=KEY".into()),
            ("BLOB", _, false) => return Err("missing key_blob argument with by=BLOB".into()),
            (_, None, false) => None,
            (by, ..) => return Err(format!("key and key_blob do not both go with by={by}")),
        };
        let alt = args.int(alt);
        if let Some(alt) = alt.filter(|alt| *alt < 0) {
            return Err(format!("invalid alt argument {alt}"));
        }
        let warmup = args.real(warmup);
        if let Some(warmup) = warmup.filter(|w| *w != -1.0 && !(0.0..=1.0).contains(w)) {
            return Err(format!("invalid warmup argument {warmup}"));
        }
        let (rampup, healthy) = (args.truth(rampup), args.enum_value(healthy));
        Ok(Self { by, key, alt, warmup, rampup, healthy })
    }

    /// Returns true if no parameter was given.
    pub(super) fn is_empty(self) -> bool {
        self.by.is_none()
            && self.alt.is_none()
            && self.warmup.is_none()
            && self.rampup.is_none()
            && self.healthy.is_none()
    }

    /// The key of the choice.
    pub(super) fn key(self, ctx: &Ctx<'_>) -> u32 {
        match (self.by(), self.key) {
            ("KEY" | "BLOB", key) => key.unwrap_or(0),
            ("HASH", _) if let Some(bereq) = &ctx.bereq => {
                let digest = vars::digest(bereq.key);
                u32::from_be_bytes(*digest.first_chunk().expect("a digest has 32 bytes"))
            }
            _ => {
                let bereq = ctx.bereq.as_ref().map(|bereq| &bereq.head.target);
                let url = bereq.or_else(|| ctx.req.as_ref().map(|req| &req.head.target));
                ring::hash(&[url.map_or(&[], |url| url)])
            }
        }
    }

    /// The source of the key; `HASH` by default.
    pub(super) fn by(self) -> &'static str {
        self.by.unwrap_or("HASH")
    }

    /// Number of alternatives to skip; 0 by default.
    pub(super) fn alt(self) -> i64 {
        self.alt.unwrap_or(0)
    }

    /// The warmup probability; -1, for the director's own, by default.
    pub(super) fn warmup(self) -> f64 {
        self.warmup.unwrap_or(-1.0)
    }

    /// True if ramping up applies; the default.
    pub(super) fn rampup(self) -> bool {
        self.rampup.unwrap_or(true)
    }

    /// The health rule; `CHOSEN` by default.
    pub(super) fn healthy(self) -> &'static str {
        self.healthy.unwrap_or("CHOSEN")
    }
}

/// The first four bytes, or fewer, as a number.
fn first_bytes(blob: &[u8]) -> Result<u32, String> {
    if blob.is_empty() {
        return Err("by=BLOB but no or empty key_blob".into());
    }
    Ok(blob.iter().take(4).fold(0, |key, byte| key << 8 | u32::from(*byte)))
}

/// An optional enumeration.
pub(super) const fn optional_enum(name: &'static str, words: &'static [&'static str]) -> Parameter {
    Parameter { name, kind: ArgumentType::Enum(words), default: Some(ParameterDefault::Absent) }
}

/// Returns true for subroutines that may set parameters of a backend request.
pub(super) fn has_backend_request(sub: Sub) -> bool {
    sub.side() == TaskSide::Backend || sub == Sub::Pipe
}

/// A set of parameters.
#[derive(Debug)]
pub(super) struct ParamSet {
    name: Box<str>,
    number: u32,
    /// Defaults of the program.
    defaults: Mutex<ChoiceParams>,
}

/// Changes of one backend request to a set.
#[derive(std::default::Default)]
struct ParamSetChanges(ChoiceParams);

/// Prefix of blobs that refer to a set.
const MARK: &[u8] = b"larder shard_param ";

impl Object for ParamSet {
    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl ParamSet {
    /// The parameters in force.
    pub(super) fn read(&self, ctx: &mut Ctx<'_>) -> ChoiceParams {
        let defaults = *self.defaults.lock();
        ctx.task
            .keep::<ParamSetChanges>("directors.shard_param", self.number)
            .0
            .or_defaults(defaults)
    }

    /// Changes the set for the backend request, or in `vcl_init` for the program.
    fn change(
        &self,
        ctx: &mut Ctx<'_>,
        what: &str,
        change: impl FnOnce(&mut ChoiceParams),
    ) -> Result<Value, ProgramFailure> {
        if has_backend_request(ctx.sub) {
            change(&mut ctx.task.keep::<ParamSetChanges>("directors.shard_param", self.number).0);
        } else if ctx.sub == Sub::Init {
            change(&mut self.defaults.lock());
        } else {
            return Err(self.misplaced(what));
        }
        Ok(Value::Void)
    }

    fn misplaced(&self, what: &str) -> ProgramFailure {
        let name = &self.name;
        ProgramFailure::new(format!(
            "vmod_directors: shard_param {name}: {what} may only be used in vcl_init and in \
             backend/pipe context"
        ))
    }

    /// Number of the set that a blob of `.use()` refers to.
    pub(super) fn of_blob(blob: &Bytes) -> Option<u32> {
        let number = blob.strip_prefix(MARK)?;
        Some(u32::from_le_bytes(*number.as_array()?))
    }
}

/// The parameters of set `number`: with the request's changes if `changed`.
pub(super) fn set_of(ctx: &mut Ctx<'_>, number: u32, changed: bool) -> Option<ChoiceParams> {
    let object = ctx.instance.object(number)?;
    let set = object.as_any().downcast_ref::<ParamSet>()?;
    Some(if changed { set.read(ctx) } else { *set.defaults.lock() })
}

const fn reading(name: &'static str, returns: Type, call: crate::vmod::MethodCall) -> Method {
    Method {
        name,
        about: "The value of this parameter for directors that use this set.",
        returns,
        params: &[],
        from: Subs::ALL,
        call,
    }
}

/// `shard_param`
pub(super) const CLASS: Class = Class {
    name: "shard_param",
    about: "Parameters that several shard directors can share (`associate`). In `vcl_init`, they \
            are set for the program. In the backend subroutines and `vcl_pipe`, they are set for \
            this request. Elsewhere they cannot be set.",
    params: &[],
    construct: |_, naming, _| {
        let (name, number) = (naming.name.into(), naming.number);
        Ok(Arc::new(ParamSet { name, number, defaults: Mutex::default() }))
    },
    methods: &[
        Method {
            name: "clear",
            about: "Resets the parameters to their defaults. For a request, the program's values \
                    are the defaults.",
            returns: Type::Void,
            params: &[],
            from: Subs::ALL,
            call: |ctx, object, _| {
                this::<ParamSet>(object)?.change(ctx, ".clear()", |p| *p = ChoiceParams::default())
            },
        },
        Method {
            name: "set",
            about: "Sets the given parameters; see `backend` of the class `shard`. Others get \
                    their defaults. For a request, the program's values are the defaults.",
            returns: Type::Void,
            params: &[
                optional_enum("by", BY),
                optional_parameter("key", Type::Int),
                optional_parameter("key_blob", Type::Blob),
                optional_parameter("alt", Type::Int),
                optional_parameter("warmup", Type::Real),
                optional_parameter("rampup", Type::Bool),
                optional_enum("healthy", HEALTHY),
            ],
            from: Subs::ALL,
            call: |ctx, object, args| {
                let set = this::<ParamSet>(object)?;
                let given = ChoiceParams::read(args, [0, 1, 2, 3, 4, 5, 6]).map_err(|why| {
                    ProgramFailure::new(format!("vmod_directors: shard_param {}: {why}", set.name))
                })?;
                set.change(ctx, ".set()", |params| *params = given)
            },
        },
        reading("get_by", Type::String, |ctx, object, _| {
            let params = this::<ParamSet>(object)?.read(ctx);
            Ok(owned(params.by()))
        }),
        reading("get_key", Type::Int, |ctx, object, _| {
            let params = this::<ParamSet>(object)?.read(ctx);
            Ok(Value::Int(i64::from(params.key(ctx))))
        }),
        reading("get_alt", Type::Int, |ctx, object, _| {
            Ok(Value::Int(this::<ParamSet>(object)?.read(ctx).alt()))
        }),
        reading("get_warmup", Type::Real, |ctx, object, _| {
            Ok(Value::Real(this::<ParamSet>(object)?.read(ctx).warmup()))
        }),
        reading("get_rampup", Type::Bool, |ctx, object, _| {
            Ok(Value::Bool(this::<ParamSet>(object)?.read(ctx).rampup()))
        }),
        reading("get_healthy", Type::String, |ctx, object, _| {
            let params = this::<ParamSet>(object)?.read(ctx);
            Ok(owned(params.healthy()))
        }),
        Method {
            name: "use",
            about: "The parameter set, as an argument for `associate` and `backend` of the class \
                    `shard`.",
            returns: Type::Blob,
            params: &[],
            from: Subs::ALL,
            call: |_, object, _| {
                let set = this::<ParamSet>(object)?;
                let mark = [MARK, &set.number.to_le_bytes()].concat();
                Ok(Value::Blob(Some(mark.into())))
            },
        },
    ],
};
