//! Director `shard`: backends on a ring, so that a key keeps its backend as long as possible.
//! Changes to the backends take effect with `reconfigure` or at the end of their task; a request
//! that is choosing keeps the ring that it has.

use std::sync::Arc;

use base::Limit;
use bytes::Bytes;
use parking_lot::{Mutex, RwLock};

use crate::failure::ProgramFailure;
use crate::state::backend::{AdminHealth, Backend, Director, Health, Leaf, Listing, ShardMember};
use crate::state::ctx::Ctx;
use crate::state::program::Object;
use crate::state::value::Value;
use crate::sub::{Subs, TaskSide};
use crate::tag::Tag;
use crate::types::Type;
use crate::vmod::{Class, Method};
use crate::vmods::args::{Args, number, optional_parameter, required_parameter};
use crate::vmods::directors::member::{check_member, health_of};
use crate::vmods::directors::object::{DirectorObject, director};
use crate::vmods::directors::param::{
    BY, ChoiceParams, HEALTHY, ParamSet, has_backend_request, optional_enum, set_of,
};
use crate::vmods::directors::ring::{self, Member, Ring};

/// Default number of points for each backend.
const REPLICAS: u32 = 67;

/// A shard director.
#[derive(Debug)]
pub(super) struct Shard {
    name: Box<str>,
    number: u32,
    ring: RwLock<Arc<Ring>>,
    rules: Mutex<ShardRules>,
    admin_health: AdminHealth,
}

/// Parameters of a director, for choices without their own.
#[derive(Clone, Copy, Debug)]
struct ShardRules {
    warmup: f64,
    /// Ramp-up time in seconds.
    rampup: f64,
    /// Number of the associated set.
    param: Option<u32>,
}

/// A change to the backends.
#[derive(Clone, Debug)]
enum Change {
    Add(Member),
    Remove(Option<Backend>, Option<Bytes>),
    Clear,
}

/// Changes of a task that are not in force yet. At the task's end they take effect.
#[derive(Default)]
struct PendingChanges {
    shard: Option<Arc<Shard>>,
    changes: Vec<Change>,
}

impl Drop for PendingChanges {
    fn drop(&mut self) {
        if let Some(shard) = self.shard.take().filter(|_| !self.changes.is_empty()) {
            shard.apply(&std::mem::take(&mut self.changes), REPLICAS, |_| ());
        }
    }
}

/// Arguments of `backend(resolve=LAZY, ...)` for a backend request.
#[derive(Default)]
struct LazyArguments {
    params: ChoiceParams,
    set: Option<u32>,
}

impl Director for Shard {
    fn name(&self) -> &str {
        &self.name
    }

    fn kind(&self) -> &'static str {
        "shard"
    }

    fn resolve(&self, ctx: &mut Ctx<'_>) -> Option<Arc<Leaf>> {
        let lazy = ctx.task.keep::<LazyArguments>("directors.shard", self.number);
        let (params, set) = (lazy.params, lazy.set);
        let params = params.or_defaults(self.defaults(ctx, set));
        self.choose(ctx, params)?.resolve(ctx)
    }

    fn health(&self) -> Health {
        health_of(self.ring().members.iter().map(|member| &member.backend))
    }

    fn is_healthy_for(&self, ctx: &Ctx<'_>) -> bool {
        self.ring().members.iter().any(|member| member.backend.is_healthy_for(ctx))
    }

    fn members(&self) -> Vec<Backend> {
        self.ring().members.iter().map(|member| member.backend.clone()).collect()
    }

    fn listing(&self, now: f64) -> Listing {
        let ShardRules { warmup, rampup, .. } = self.rules();
        let row = |member: &Member| {
            let Health { is_healthy, changed } = member.backend.health();
            let (time, since) = (member.rampup.unwrap_or(rampup), now - changed);
            let (share, remaining) = match is_healthy {
                false => (0.0, 0.0),
                true if since < time => (since.max(0.0) / time, time - since),
                true => (1.0, 0.0),
            };
            let ident = member.ident.as_ref().map(|ident| String::from_utf8_lossy(ident).into());
            let ident = ident.unwrap_or_else(|| member.backend.name().into());
            ShardMember { ident, share, remaining }
        };
        let members = self.ring().members.iter().map(row).collect();
        Listing::Shard { warmup, rampup, members }
    }

    fn admin_health(&self) -> Option<&AdminHealth> {
        Some(&self.admin_health)
    }
}

impl Shard {
    fn ring(&self) -> Arc<Ring> {
        Arc::clone(&self.ring.read())
    }

    fn rules(&self) -> ShardRules {
        *self.rules.lock()
    }

    /// Parameters of the set `given`, or of the associated one. As in Varnish, and unlike its
    /// manual, changes of a request count only for the latter.
    fn defaults(&self, ctx: &mut Ctx<'_>, given: Option<u32>) -> ChoiceParams {
        let set = given.or_else(|| self.rules().param);
        set.and_then(|number| set_of(ctx, number, given.is_none())).unwrap_or_default()
    }

    /// Puts `changes` into force.
    fn apply(&self, changes: &[Change], replicas: u32, mut skipped: impl FnMut(&Member)) {
        let mut ring = self.ring.write();
        let mut members = ring.members.clone();
        for change in changes {
            match change {
                Change::Add(member) if members.iter().any(|m| m.is_same(member)) => {
                    skipped(member);
                }
                Change::Add(member) => members.push(member.clone()),
                Change::Remove(backend, ident) => members.retain(|member| {
                    let is_it = backend.as_ref().is_none_or(|b| member.backend.is(b))
                        && ident.as_ref().is_none_or(|i| member.ident.as_ref() == Some(i));
                    !is_it
                }),
                Change::Clear => members.clear(),
            }
        }
        *ring = Arc::new(Ring::new(members, replicas));
    }

    /// The backend for these parameters.
    fn choose(&self, ctx: &Ctx<'_>, params: ChoiceParams) -> Option<Backend> {
        let ring = self.ring();
        if ring.members.is_empty() {
            self.say(ctx, Tag::Error, "no backends");
            return None;
        }
        let most = ring.members.len() as i64 - 1;
        if params.alt() > most {
            let line = format!("parameter alt={} limited to {most}", params.alt());
            self.say(ctx, Tag::Error, &line);
        }
        let choice = Choice {
            ring: &ring,
            rules: self.rules(),
            params,
            alt: params.alt().min(most) as usize,
            now: ctx.now,
        };
        let chosen = choice.make(ctx, params.key(ctx))?;
        Some(ring.members[chosen].backend.clone())
    }

    fn say(&self, ctx: &Ctx<'_>, tag: Tag, text: &str) {
        let line = format!("vmod_directors: shard {}: {text}", self.name);
        ctx.environment.log(tag, line.as_bytes());
    }

    fn failure(&self, text: &str) -> ProgramFailure {
        ProgramFailure::new(format!("vmod_directors: shard {}: {text}", self.name))
    }
}

/// One choice among the backends of a ring.
struct Choice<'a> {
    ring: &'a Ring,
    rules: ShardRules,
    params: ChoiceParams,
    alt: usize,
    now: f64,
}

/// A backend met on the walk, and when its health changed.
#[derive(Clone, Copy)]
struct RingCandidate {
    number: usize,
    changed: f64,
}

impl Choice<'_> {
    fn make(&self, ctx: &Ctx<'_>, key: u32) -> Option<usize> {
        let mut walk = self.ring.walk_from(key);
        let healthy = self.params.healthy();
        // The last healthy backend that was skipped, as a fallback.
        let mut passed = None;
        let mut previous = None;
        if self.alt > 0 {
            match self.next(ctx, &mut walk, self.alt - 1, healthy == "ALL", &mut passed) {
                None => return passed.map(|candidate| candidate.number),
                Some(last) => previous = Some(last),
            }
        }
        let Some(chosen) = self.next(ctx, &mut walk, 0, healthy != "IGNORE", &mut passed) else {
            return passed.map(|candidate| candidate.number);
        };
        debug_assert!(previous.is_none_or(|p: RingCandidate| p.number != chosen.number));
        let warmup = match self.params.warmup() {
            -1.0 => self.rules.warmup,
            warmup => warmup,
        };
        let rampup = self.params.rampup();
        if self.alt > 0 || healthy == "IGNORE" || (!rampup && warmup == 0.0) {
            return Some(chosen.number);
        }
        let Some(other) = self.next(ctx, &mut walk, 0, true, &mut passed) else {
            return Some(chosen.number);
        };
        let since = self.now - chosen.changed;
        let time = self.rampup(chosen);
        let stays = if since < time {
            !rampup
                || self.now - other.changed < self.rampup(other)
                || ctx.environment.random() * time < since
        } else {
            warmup == 0.0 || ctx.environment.random() > warmup
        };
        Some(if stays { chosen.number } else { other.number })
    }

    /// The next backend after `skip` others: of all, or of the healthy ones.
    fn next(
        &self,
        ctx: &Ctx<'_>,
        walk: &mut ring::RingWalk<'_>,
        mut skip: usize,
        healthy_only: bool,
        passed: &mut Option<RingCandidate>,
    ) -> Option<RingCandidate> {
        for number in walk {
            let backend = &self.ring.members[number].backend;
            let (is_healthy, changed) = (backend.is_healthy_for(ctx), backend.health().changed);
            if !is_healthy && healthy_only {
                continue;
            }
            let candidate = RingCandidate { number, changed };
            if skip == 0 {
                return Some(candidate);
            }
            skip -= 1;
            if is_healthy {
                *passed = Some(candidate);
            }
        }
        None
    }

    fn rampup(&self, candidate: RingCandidate) -> f64 {
        self.ring.members[candidate.number].rampup.unwrap_or(self.rules.rampup)
    }
}

fn changes<'a>(ctx: &'a mut Ctx<'_>, shard: &Arc<Shard>) -> &'a mut Vec<Change> {
    let pending: &mut PendingChanges = ctx.task.keep("directors.shard.pending", shard.number);
    pending.shard = Some(Arc::clone(shard));
    &mut pending.changes
}

fn add_backend(
    ctx: &mut Ctx<'_>,
    object: &Arc<dyn Object>,
    args: &[Value],
) -> Result<Value, ProgramFailure> {
    let shard = director::<Shard>(object)?;
    let backend = args.backend(0);
    check_member(&**shard, backend)?;
    let weight = match args.real(3) {
        Some(weight) if weight >= 1.0 => weight,
        Some(weight) => {
            shard.say(ctx, Tag::Debug, &format!(".add_backend(weight={weight:.6}) ignored"));
            1.0
        }
        None => 1.0,
    };
    let most = ctx.environment.shared().most_backends();
    let members = shard.ring().members.len();
    let changes = changes(ctx, shard);
    if members + changes.len() >= most {
        ctx.note_limit(Limit::DirectorBackends);
        return Err(shard.failure("more backends than director_backends allows"));
    }
    changes.push(Change::Add(Member {
        backend: backend.clone(),
        ident: args.string(1).map(|ident| Bytes::copy_from_slice(ident)),
        rampup: args.real(2),
        weight,
    }));
    Ok(Value::Bool(true))
}

fn remove_backend(
    ctx: &mut Ctx<'_>,
    object: &Arc<dyn Object>,
    args: &[Value],
) -> Result<Value, ProgramFailure> {
    let shard = director::<Shard>(object)?;
    let backend = match args.backend(0) {
        Backend::None => None,
        backend => Some(backend.clone()),
    };
    let ident = args.string(1).cloned();
    if backend.is_none() && ident.is_none() {
        shard.say(ctx, Tag::Error, ".remove_backend() at least one of backend and ident");
        return Ok(Value::Bool(false));
    }
    changes(ctx, shard).push(Change::Remove(backend, ident));
    Ok(Value::Bool(true))
}

fn reconfigure(
    ctx: &mut Ctx<'_>,
    object: &Arc<dyn Object>,
    args: &[Value],
) -> Result<Value, ProgramFailure> {
    let shard = director::<Shard>(object)?;
    let asked = args.int(0).unwrap_or_else(|| i64::from(REPLICAS));
    let Some(replicas) = u32::try_from(asked).ok().filter(|n| *n > 0) else {
        shard.say(ctx, Tag::Error, &format!("invalid replicas argument {asked}"));
        return Ok(Value::Bool(false));
    };
    let changes = std::mem::take(changes(ctx, shard));
    let mut skipped = Vec::new();
    shard.apply(&changes, replicas, |member| skipped.push(member.backend.name().to_string()));
    for name in skipped {
        shard.say(ctx, Tag::Debug, &format!("backend {name} already exists - skipping"));
    }
    Ok(Value::Bool(!shard.ring().members.is_empty()))
}

/// The set in argument `at`, if given.
fn set_argument(shard: &Shard, args: &[Value], at: usize) -> Result<Option<u32>, ProgramFailure> {
    let Some(Value::Blob(blob)) = args.get(at) else { return Ok(None) };
    let set = blob.as_ref().and_then(ParamSet::of_blob);
    set.map(Some).ok_or_else(|| shard.failure("param argument is not a shard_param set"))
}

fn backend(
    ctx: &mut Ctx<'_>,
    object: &Arc<dyn Object>,
    args: &[Value],
) -> Result<Value, ProgramFailure> {
    let shard = director::<Shard>(object)?;
    let starts = ctx.sub.side() == TaskSide::Housekeeping;
    let is_lazy = args.enum_value(8).map_or(starts, |resolve| resolve == "LAZY");
    let params = ChoiceParams::read(args, [0, 1, 2, 3, 4, 5, 6])
        .map_err(|why| shard.failure(&format!("shard.backend() {why}")))?;
    let set = set_argument(shard, args, 7)?;
    if !is_lazy {
        if starts {
            return Err(shard.failure("resolve=NOW cannot be used in vcl_init{}/vcl_fini{}"));
        }
        let params = params.or_defaults(shard.defaults(ctx, set));
        return Ok(Value::Backend(shard.choose(ctx, params).unwrap_or_default()));
    }
    if has_backend_request(ctx.sub) {
        // Without parameters, earlier arguments and their set stay.
        if !params.is_empty() || set.is_some() {
            let lazy: &mut LazyArguments = ctx.task.keep("directors.shard", shard.number);
            *lazy = LazyArguments { params, set: set.or(lazy.set) };
        }
    } else if !params.is_empty() || set.is_some() {
        return Err(shard.failure(
            "resolve=LAZY with other parameters can only be used in backend/pipe context",
        ));
    }
    Ok(Value::Backend(Backend::Director(shard.clone())))
}

fn rule(
    object: &Arc<dyn Object>,
    change: impl FnOnce(&mut ShardRules),
) -> Result<Value, ProgramFailure> {
    let shard = director::<Shard>(object)?;
    change(&mut shard.rules.lock());
    Ok(Value::Void)
}

/// `shard`
pub(super) const CLASS: Class = Class {
    name: "shard",
    about: "Selects a backend by a key (consistent hashing). All caches with the same backends, \
            Larder or Varnish, select the same one. If a backend fails, only its keys move to \
            others.",
    params: &[],
    construct: |ctx, naming, _| {
        Ok(Arc::new(DirectorObject(Arc::new(Shard {
            name: naming.name.into(),
            number: naming.number,
            ring: RwLock::default(),
            rules: Mutex::new(ShardRules { warmup: 0.0, rampup: 0.0, param: None }),
            admin_health: AdminHealth::since(ctx.now),
        }))))
    },
    methods: METHODS,
};

const METHODS: &[Method] = &[
    Method {
        name: "set_warmup",
        about: "Probability, from 0 to 1, of selecting the next backend instead, to warm it up.",
        returns: Type::Void,
        params: &[number("probability", Type::Real, 0.0)],
        from: Subs::ALL,
        call: |_, object, args| {
            let asked = args.real(0).unwrap_or(0.0);
            if !(0.0..1.0).contains(&asked) {
                let shard = director::<Shard>(object)?;
                return Err(shard.failure(&format!(".set_warmup({asked}) invalid")));
            }
            rule(object, |rules| rules.warmup = asked)
        },
    },
    Method {
        name: "set_rampup",
        about: "Time after a backend becomes healthy in which it gets less than its share.",
        returns: Type::Void,
        params: &[number("duration", Type::Duration, 0.0)],
        from: Subs::ALL,
        call: |_, object, args| rule(object, |rules| rules.rampup = args.real(0).unwrap_or(0.0)),
    },
    Method {
        name: "associate",
        about: "The parameter set to use (`shard_param.use()`). No argument removes the set.",
        returns: Type::Void,
        params: &[optional_parameter("param", Type::Blob)],
        from: Subs::ALL,
        call: |_, object, args| {
            let set = set_argument(director::<Shard>(object)?, args, 0)?;
            rule(object, |rules| rules.param = set)
        },
    },
    Method {
        name: "add_backend",
        about: "Adds a backend at the next rebuild of the ring. `ident` is hashed instead of the \
                backend's name. `rampup` is the backend's own. `weight`, at least 1, multiplies \
                the number of its keys.",
        returns: Type::Bool,
        params: &[
            required_parameter("backend", Type::Backend),
            optional_parameter("ident", Type::String),
            optional_parameter("rampup", Type::Duration),
            optional_parameter("weight", Type::Real),
        ],
        from: Subs::ALL,
        call: add_backend,
    },
    Method {
        name: "remove_backend",
        about: "Removes a backend, or the one with this `ident`, at the next rebuild of the ring.",
        returns: Type::Bool,
        params: &[
            optional_parameter("backend", Type::Backend),
            optional_parameter("ident", Type::String),
        ],
        from: Subs::ALL,
        call: remove_backend,
    },
    Method {
        name: "clear",
        about: "Removes all backends at the next rebuild of the ring.",
        returns: Type::Bool,
        params: &[],
        from: Subs::ALL,
        call: |ctx, object, _| {
            changes(ctx, director::<Shard>(object)?).push(Change::Clear);
            Ok(Value::Bool(true))
        },
    },
    Method {
        name: "reconfigure",
        about: "Rebuilds the ring with this number of points per backend. Without this call, the \
                ring is rebuilt at the end of the task that changed the backends, with 67 points.",
        returns: Type::Bool,
        params: &[number("replicas", Type::Int, 67.0)],
        from: Subs::ALL,
        call: reconfigure,
    },
    Method {
        name: "key",
        about: "Makes a key from a string: the last 32 bits of its SHA-256.",
        returns: Type::Int,
        params: &[required_parameter("", Type::String)],
        from: Subs::ALL,
        call: |_, _, args| Ok(Value::Int(i64::from(ring::hash(&[args.bytes(0)])))),
    },
    Method {
        name: "backend",
        about: "Selects the backend for a key. `by=HASH` uses Varnish's hash of the request, or \
                the URL while that hash is unknown. Other keys are the URL, a number, or the first \
                four bytes of a blob. `alt` selects the n-th alternative. `healthy` skips \
                unhealthy backends (`CHOSEN`), skips none (`IGNORE`), or counts only healthy \
                alternatives (`ALL`). `resolve=LAZY` returns the director itself, which selects \
                when the fetch begins. In `vcl_init`, the result is always lazy.",
        returns: Type::Backend,
        params: &[
            optional_enum("by", BY),
            optional_parameter("key", Type::Int),
            optional_parameter("key_blob", Type::Blob),
            optional_parameter("alt", Type::Int),
            optional_parameter("warmup", Type::Real),
            optional_parameter("rampup", Type::Bool),
            optional_enum("healthy", HEALTHY),
            optional_parameter("param", Type::Blob),
            optional_enum("resolve", &["NOW", "LAZY"]),
        ],
        from: Subs::ALL,
        call: backend,
    },
    Method {
        name: "debug",
        about: "Accepts Varnish's debugging flags, which have no effect.",
        returns: Type::Void,
        params: &[required_parameter("", Type::Int)],
        from: Subs::ALL,
        call: |_, _, _| Ok(Value::Void),
    },
];
