//! Simple directors over a member list: `round_robin`, `fallback`, `random` and `hash`.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;

use crate::failure::ProgramFailure;
use crate::state::backend::{AdminHealth, Backend, Director, Health, Leaf, Listing};
use crate::state::ctx::Ctx;
use crate::state::program::Object;
use crate::state::value::Value;
use crate::sub::Subs;
use crate::types::Type;
use crate::vmod::{Class, Method, ObjectIdentity, Parameter};
use crate::vmods::args::{Args, number, required_parameter, truth};
use crate::vmods::directors::list::List;
use crate::vmods::directors::object::{DirectorObject, director};
use crate::vmods::directors::ring;

/// Takes turns among its backends.
#[derive(Debug)]
pub(super) struct RoundRobin {
    name: Box<str>,
    list: List,
    next: AtomicUsize,
}

/// The first healthy backend.
#[derive(Debug)]
pub(super) struct Fallback {
    name: Box<str>,
    list: List,
    /// True if the director stays with its current member.
    is_sticky: bool,
    at: Mutex<usize>,
}

/// A random backend, by weight.
#[derive(Debug)]
pub(super) struct Random {
    name: Box<str>,
    list: List,
}

/// A backend by the hash of a string, by weight.
#[derive(Debug)]
pub(super) struct Hash {
    name: Box<str>,
    list: List,
}

/// Parts that the four directors share.
trait ListDirector: Director + Sized + 'static {
    fn list(&self) -> &List;

    /// Called after the member at `at` was removed.
    fn removed(&self, _at: usize) {}
}

macro_rules! director {
    ($name:ident, $kind:literal) => {
        fn name(&self) -> &str {
            &self.name
        }

        fn kind(&self) -> &'static str {
            $kind
        }

        fn health(&self) -> Health {
            self.list.health()
        }

        fn is_healthy_for(&self, ctx: &Ctx<'_>) -> bool {
            self.list.read(|members| members.iter().any(|(member, _)| member.is_healthy_for(ctx)))
        }

        fn members(&self) -> Vec<Backend> {
            self.list.all()
        }

        fn admin_health(&self) -> Option<&AdminHealth> {
            Some(&self.list.admin_health)
        }
    };
}

impl Director for RoundRobin {
    director!(RoundRobin, "round-robin");

    fn resolve(&self, ctx: &mut Ctx<'_>) -> Option<Arc<Leaf>> {
        let chosen = self.list.read(|members| {
            (0..members.len()).find_map(|_| {
                let at = self.next.fetch_add(1, Ordering::Relaxed) % members.len();
                let (backend, _) = &members[at];
                backend.is_healthy_for(ctx).then(|| backend.clone())
            })
        });
        chosen?.resolve(ctx)
    }
}

impl ListDirector for RoundRobin {
    fn list(&self) -> &List {
        &self.list
    }
}

impl Director for Fallback {
    director!(Fallback, "fallback");

    fn listing(&self, _: f64) -> Listing {
        let at = *self.at.lock();
        let current = self.list.read(|members| (at < members.len()).then_some(at));
        Listing::Fallback { sticky: self.is_sticky, current }
    }

    fn resolve(&self, ctx: &mut Ctx<'_>) -> Option<Arc<Leaf>> {
        let chosen = self.list.read(|members| {
            let mut at = self.at.lock();
            let from = if self.is_sticky { *at } else { 0 };
            let order = (from..members.len()).chain(0..from.min(members.len()));
            let found = order.into_iter().find(|n| members[*n].0.is_healthy_for(ctx))?;
            *at = found;
            Some(members[found].0.clone())
        });
        chosen?.resolve(ctx)
    }
}

impl ListDirector for Fallback {
    fn list(&self) -> &List {
        &self.list
    }

    fn removed(&self, removed: usize) {
        let mut at = self.at.lock();
        if *at > removed {
            *at -= 1;
        }
    }
}

impl Director for Random {
    director!(Random, "random");

    fn listing(&self, _: f64) -> Listing {
        Listing::Random(self.list.read(|members| members.iter().map(|(_, w)| *w).collect()))
    }

    fn resolve(&self, ctx: &mut Ctx<'_>) -> Option<Arc<Leaf>> {
        self.list.pick(ctx, ctx.environment.random())?.resolve(ctx)
    }
}

impl ListDirector for Random {
    fn list(&self) -> &List {
        &self.list
    }
}

impl Director for Hash {
    director!(Hash, "hash");

    /// As in Varnish, without details.
    fn listing(&self, _: f64) -> Listing {
        Listing::Hidden
    }

    /// Always `None`: `hash` has no string to hash here; `.backend()` has already selected.
    fn resolve(&self, _: &mut Ctx<'_>) -> Option<Arc<Leaf>> {
        None
    }
}

impl ListDirector for Hash {
    fn list(&self) -> &List {
        &self.list
    }
}

fn add<D: ListDirector>(
    ctx: &mut Ctx<'_>,
    object: &Arc<dyn Object>,
    args: &[Value],
) -> Result<Value, ProgramFailure> {
    let director = director::<D>(object)?;
    let weight = args.real(1).unwrap_or(1.0);
    director.list().add(&**director, args.backend(0), weight, ctx.environment)?;
    Ok(Value::Void)
}

fn remove<D: ListDirector>(
    _: &mut Ctx<'_>,
    object: &Arc<dyn Object>,
    args: &[Value],
) -> Result<Value, ProgramFailure> {
    let director = director::<D>(object)?;
    if let Some(at) = director.list().remove(args.backend(0)) {
        director.removed(at);
    }
    Ok(Value::Void)
}

/// The director itself, which selects when the fetch begins.
fn itself<D: ListDirector>(
    _: &mut Ctx<'_>,
    object: &Arc<dyn Object>,
    _: &[Value],
) -> Result<Value, ProgramFailure> {
    Ok(Value::Backend(Backend::Director(director::<D>(object)?.clone())))
}

const ONE: &[Parameter] = &[required_parameter("", Type::Backend)];

const fn adding<D: ListDirector>(about: &'static str, params: &'static [Parameter]) -> Method {
    Method {
        name: "add_backend",
        about,
        returns: Type::Void,
        params,
        from: Subs::ALL,
        call: add::<D>,
    }
}

const fn removing<D: ListDirector>() -> Method {
    Method {
        name: "remove_backend",
        about: "Removes a backend.",
        returns: Type::Void,
        params: ONE,
        from: Subs::ALL,
        call: remove::<D>,
    }
}

const fn choosing<D: ListDirector>() -> Method {
    Method {
        name: "backend",
        about: "The director. It selects a backend when the fetch begins.",
        returns: Type::Backend,
        params: &[],
        from: Subs::ALL,
        call: itself::<D>,
    }
}

/// `round_robin`
pub(super) const ROUND_ROBIN: Class = Class {
    name: "round_robin",
    about: "Selects healthy backends in turn.",
    params: &[],
    construct: |ctx, naming: &ObjectIdentity<'_>, _| {
        Ok(Arc::new(DirectorObject(Arc::new(RoundRobin {
            name: naming.name.into(),
            list: List::new(ctx.now),
            next: AtomicUsize::new(0),
        }))))
    },
    methods: &[
        adding::<RoundRobin>("Adds a backend.", ONE),
        removing::<RoundRobin>(),
        choosing::<RoundRobin>(),
    ],
};

/// `fallback`
pub(super) const FALLBACK: Class = Class {
    name: "fallback",
    about: "Selects the first healthy backend, in the order in which they were added. A sticky \
            director stays with its current backend while it is healthy, then continues from \
            there.",
    params: &[truth("sticky", false)],
    construct: |ctx, naming: &ObjectIdentity<'_>, args| {
        Ok(Arc::new(DirectorObject(Arc::new(Fallback {
            name: naming.name.into(),
            list: List::new(ctx.now),
            is_sticky: args.truth(0).unwrap_or(false),
            at: Mutex::new(0),
        }))))
    },
    methods: &[
        adding::<Fallback>("Adds a backend at the end of the list.", ONE),
        removing::<Fallback>(),
        choosing::<Fallback>(),
    ],
};

/// `random`
pub(super) const RANDOM: Class = Class {
    name: "random",
    about: "Selects a random healthy backend, in proportion to its weight.",
    params: &[],
    construct: |ctx, naming: &ObjectIdentity<'_>, _| {
        Ok(Arc::new(DirectorObject(Arc::new(Random {
            name: naming.name.into(),
            list: List::new(ctx.now),
        }))))
    },
    methods: &[
        adding::<Random>(
            "Adds a backend with its weight: its share of the total weight.",
            &[required_parameter("", Type::Backend), required_parameter("", Type::Real)],
        ),
        removing::<Random>(),
        choosing::<Random>(),
    ],
};

/// `hash`
pub(super) const HASH: Class = Class {
    name: "hash",
    about: "Selects a healthy backend by a string. The same string selects the same backend while \
            the same backends are healthy.",
    params: &[],
    construct: |ctx, naming: &ObjectIdentity<'_>, _| {
        Ok(Arc::new(DirectorObject(Arc::new(Hash {
            name: naming.name.into(),
            list: List::new(ctx.now),
        }))))
    },
    methods: &[
        adding::<Hash>(
            "Adds a backend with its weight: its share of all strings.",
            &[required_parameter("", Type::Backend), number("weight", Type::Real, 1.0)],
        ),
        removing::<Hash>(),
        Method {
            name: "backend",
            about: "The backend for this string. No backend if none is healthy.",
            returns: Type::Backend,
            params: &[required_parameter("", Type::String)],
            from: Subs::ALL,
            call: |ctx, object, args| {
                let chosen = director::<Hash>(object)?.list.pick(ctx, point(args.bytes(0)));
                Ok(Value::Backend(chosen.unwrap_or_default()))
            },
        },
    ],
};

/// Position of a string's hash, from 0 to 1.
fn point(text: &[u8]) -> f64 {
    f64::from(ring::hash(&[text])) / (f64::from(u32::MAX) + 1.0)
}
