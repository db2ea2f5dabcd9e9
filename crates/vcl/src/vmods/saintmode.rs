//! VMOD `saintmode`: backends that are skipped for requests that they have failed. Each object is a
//! director over one backend, with a list of such requests and their deadlines. The list never
//! exceeds its limit.

use std::any::Any;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::failure::ProgramFailure;
use crate::state::backend::{Backend, Director, Health, Leaf};
use crate::state::ctx::Ctx;
use crate::state::program::Object;
use crate::state::value::Value;
use crate::sub::{Sub, Subs};
use crate::tag::Tag;
use crate::types::Type;
use crate::vars;
use crate::vmod::{Class, Function, Method, Module};
use crate::vmods::args::{Args, owned, required_parameter, this};

/// The module.
pub static MODULE: Module = Module {
    name: "saintmode",
    about: "Backends that are skipped for requests on which they failed. Each object stands for a \
            backend, and is sick for the requests on its list. If the list reaches the threshold, \
            the backend is sick for all requests.",
    functions: FUNCTIONS,
    classes: &[CLASS],
    refused: &[],
};

const FUNCTIONS: &[Function] = &[
    Function {
        name: "blacklist",
        about: "Puts the request on the list of the backend that responded, for this time.",
        returns: Type::Void,
        params: &[required_parameter("expires", Type::Duration)],
        from: Sub::BackendResponse.only(),
        call: blacklist,
    },
    Function {
        name: "status",
        about: "All objects as JSON, with backend, list length and threshold.",
        returns: Type::String,
        params: &[],
        from: Subs::BOTH,
        call: status,
    },
];

const CLASS: Class = Class {
    name: "saintmode",
    about: "A wrapper for a backend. `threshold` is the number of listed requests at which the \
            backend is sick for all requests. 0: no list is kept.",
    params: &[
        required_parameter("backend", Type::Backend),
        required_parameter("threshold", Type::Int),
    ],
    construct: |_, naming, args| {
        let backend = args.backend(0);
        if matches!(backend, Backend::None) {
            let why = format!("saintmode {}: no backend", naming.name);
            return Err(ProgramFailure::new(why));
        }
        Ok(Arc::new(SaintmodeObject(Arc::new(SaintmodeDirector {
            name: naming.name.into(),
            backend: backend.clone(),
            threshold: args.int(1).and_then(|n| usize::try_from(n).ok()).unwrap_or(0),
            troubles: Mutex::default(),
        }))))
    },
    methods: &[
        Method {
            name: "backend",
            about: "The wrapped backend.",
            returns: Type::Backend,
            params: &[],
            from: Subs::ALL,
            call: |_, object, _| {
                Ok(Value::Backend(Backend::Director(this::<SaintmodeObject>(object)?.0.clone())))
            },
        },
        Method {
            name: "blacklist_count",
            about: "Number of requests on the list.",
            returns: Type::Int,
            params: &[],
            from: Subs::BOTH,
            call: |ctx, object, _| {
                Ok(Value::Int(this::<SaintmodeObject>(object)?.0.count(ctx.now) as i64))
            },
        },
        Method {
            name: "is_healthy",
            about: "Whether the backend is healthy for this request.",
            returns: Type::Bool,
            params: &[],
            from: Subs::BOTH,
            call: |ctx, object, _| {
                Ok(Value::Bool(this::<SaintmodeObject>(object)?.0.is_healthy_for(ctx)))
            },
        },
    ],
};

/// Identity of a request: the beginning of its key's SHA-256.
type RequestId = [u8; 16];

/// An object of the class.
struct SaintmodeObject(Arc<SaintmodeDirector>);

impl Object for SaintmodeObject {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn backend(&self) -> Option<Backend> {
        Some(Backend::Director(self.0.clone()))
    }
}

#[derive(Debug)]
struct SaintmodeDirector {
    name: Box<str>,
    backend: Backend,
    threshold: usize,
    /// Failed requests, with the time until which they are skipped, in seconds since 1970.
    troubles: Mutex<Vec<(RequestId, f64)>>,
}

/// Longest list, whatever the threshold.
const TROUBLES_MAX: usize = 10_000;

impl SaintmodeDirector {
    /// Reads the entries of the list that are in force.
    fn read<T>(&self, now: f64, look: impl FnOnce(&mut Vec<(RequestId, f64)>) -> T) -> T {
        let mut troubles = self.troubles.lock();
        troubles.retain(|(_, until)| *until > now);
        look(&mut troubles)
    }

    fn count(&self, now: f64) -> usize {
        self.read(now, |troubles| troubles.len())
    }

    fn add(&self, id: RequestId, now: f64, seconds: f64) {
        // Beyond the threshold the backend is sick for all requests, so the list need not be
        // longer.
        let most = self.threshold.min(TROUBLES_MAX);
        self.read(now, |troubles| {
            if troubles.len() < most {
                troubles.push((id, now + seconds));
            }
        });
    }

    /// Returns true if the backend, when healthy, may be used for `id`.
    fn is_trusted(&self, id: Option<RequestId>, now: f64) -> bool {
        self.threshold == 0
            || self.read(now, |troubles| {
                troubles.len() < self.threshold.min(TROUBLES_MAX)
                    && !troubles.iter().any(|(listed, _)| Some(*listed) == id)
            })
    }
}

impl Director for SaintmodeDirector {
    fn name(&self) -> &str {
        &self.name
    }

    fn kind(&self) -> &'static str {
        "saintmode"
    }

    fn resolve(&self, ctx: &mut Ctx<'_>) -> Option<Arc<Leaf>> {
        self.is_healthy_for(ctx).then(|| self.backend.resolve(ctx)).flatten()
    }

    fn health(&self) -> Health {
        self.backend.health()
    }

    fn is_healthy_for(&self, ctx: &Ctx<'_>) -> bool {
        self.backend.is_healthy_for(ctx) && self.is_trusted(id(ctx), ctx.now)
    }

    fn members(&self) -> Vec<Backend> {
        vec![self.backend.clone()]
    }
}

/// Identity of the request, once it has a key.
fn id(ctx: &Ctx<'_>) -> Option<RequestId> {
    let of_fetch = ctx.bereq.as_ref().map(|bereq| bereq.key);
    let key = of_fetch.or_else(|| ctx.req.as_ref().and_then(|req| req.key))?;
    vars::digest(key).first_chunk().copied()
}

fn saints(ctx: &Ctx<'_>) -> Vec<Arc<SaintmodeDirector>> {
    let objects = ctx.instance.objects();
    let saint = |object: &Arc<dyn Object>| {
        object.as_any().downcast_ref::<SaintmodeObject>().map(|saint| saint.0.clone())
    };
    objects.iter().filter_map(saint).collect()
}

fn blacklist(ctx: &mut Ctx<'_>, args: &[Value]) -> Result<Value, ProgramFailure> {
    let answered = ctx.beresp.as_ref().and_then(|beresp| beresp.state.backend.clone());
    let (Some(id), Some(seconds)) = (id(ctx), args.real(0)) else { return Ok(Value::Void) };
    let answered = answered.map_or(Backend::None, Backend::Leaf);
    match saints(ctx).iter().find(|saint| saint.backend.is(&answered)) {
        Some(saint) => saint.add(id, ctx.now, seconds),
        None => ctx.environment.log(Tag::Error, b"saintmode.blacklist: no object for this backend"),
    }
    Ok(Value::Void)
}

fn status(ctx: &mut Ctx<'_>, _: &[Value]) -> Result<Value, ProgramFailure> {
    let lines: Vec<String> = saints(ctx).iter().map(|saint| line(saint, ctx.now)).collect();
    let text = format!("{{\n\t\"saintmode\": [\n{}\n\t]\n}}\n", lines.join(",\n"));
    Ok(owned(text.into_bytes()))
}

fn line(saint: &SaintmodeDirector, now: f64) -> String {
    // Names are identifiers of VCL, which need no escapes.
    format!(
        "\t\t{{ \"name\": \"{}\", \"backend\": \"{}\", \"count\": \"{}\", \"threshold\": \"{}\" }}",
        saint.name,
        saint.backend.name(),
        saint.count(now),
        saint.threshold
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::backend::BackendSpec;

    fn watch(threshold: usize) -> SaintmodeDirector {
        SaintmodeDirector {
            name: "s1".into(),
            backend: Backend::Leaf(Leaf::new("b1", BackendSpec::default())),
            threshold,
            troubles: Mutex::default(),
        }
    }

    #[test]
    fn it_is_sick_for_what_is_on_the_list() {
        let watch = watch(3);
        watch.add([1; 16], 100.0, 20.0);
        assert!(!watch.is_trusted(Some([1; 16]), 101.0));
        assert!(watch.is_trusted(Some([2; 16]), 101.0));
        assert!(watch.is_trusted(None, 101.0));
        assert!(watch.is_trusted(Some([1; 16]), 120.0), "the time is over");
        assert_eq!(watch.count(120.0), 0);
    }

    #[test]
    fn beyond_the_threshold_it_is_sick_for_all() {
        let watch = watch(2);
        for n in 1..5 {
            watch.add([n; 16], 100.0, 10.0 + f64::from(n));
        }
        assert_eq!(watch.count(100.0), 2, "the list is no longer than it needs to be");
        assert!(!watch.is_trusted(Some([9; 16]), 100.0));
        assert!(watch.is_trusted(Some([9; 16]), 111.5), "one of the two is over");
    }

    #[test]
    fn a_threshold_of_nothing_keeps_no_list() {
        let watch = watch(0);
        watch.add([1; 16], 100.0, 20.0);
        assert!(watch.is_trusted(Some([1; 16]), 101.0));
    }

    #[test]
    fn the_status_is_json() {
        let line = line(&watch(3), 0.0);
        let expected = r#"{ "name": "s1", "backend": "b1", "count": "0", "threshold": "3" }"#;
        assert_eq!(line.trim_start(), expected);
    }
}
