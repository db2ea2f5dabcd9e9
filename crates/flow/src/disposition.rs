//! The ways that requests go once they are judged: a reply at once, or something to wait for.

use std::rc::Rc;
use std::sync::Arc;

use base::KeyBuf;
use cache::Object;
use files::Root;
use policy::{Notes, ReceiveVerdict};

use crate::limit_permit::LimitPermit;
use crate::purge::{Answers, PurgeOrder};
use crate::state::assemble::Draft;
use crate::state::core::CoreState;
use crate::state::downstream::Downstream;
use crate::state::gate::User;
use crate::state::gate::parked_request::ParkedRequest;
use crate::state::live_configuration::LiveRef;
use crate::state::reply::{ForwardReason, Reply};
use crate::state::site::Site;
use crate::state::site_context::SiteContext;
use crate::state::vcl::halted_request::HaltedRequest;

/// The outcome of the steps that a request takes without waiting.
#[expect(clippy::large_enum_variant, reason = "a hit's reply is moved, never allocated")]
pub enum Start {
    /// Its reply.
    Reply(Reply),
    /// It must wait for an origin: hand the request to [`Slow::run`].
    Slow(Box<WaitingRequest>),
}

/// A request that must wait, without its [`Request`](message::Request): the connection owns that.
pub struct WaitingRequest {
    pub(crate) live: LiveRef,
    pub(crate) site: Arc<Site>,
    pub(crate) notes: Notes,
    pub(crate) way: RequestDisposition,
    pub(crate) downstream: Downstream,
    /// The cookies that the request came with, if its answer may have fragments: policy has perhaps
    /// taken some out.
    pub(crate) cookies: Option<Box<[u8]>>,
    /// The marks that its reply gets.
    pub(crate) marks: Marks,
}

/// The marks that a reply gets by the stages that its request has passed.
#[derive(Default)]
pub(crate) struct Marks {
    /// The verdict of its site's limits, where that has consequences.
    pub(crate) pass: Option<Box<LimitPermit>>,
    /// The user, as a gate knows it.
    pub(crate) user: Option<Arc<User>>,
}

impl Marks {
    /// Marks what has come of the request.
    #[inline(always)]
    pub(crate) fn put(self, start: &mut Start) {
        if self.user.is_some() || self.pass.is_some() {
            self.put_any(start);
        }
    }

    #[cold]
    fn put_any(self, start: &mut Start) {
        match start {
            Start::Reply(reply) => self.put_on(reply),
            Start::Slow(slow) => slow.marks = self,
        }
    }

    /// Marks a reply.
    pub(crate) fn put_on(self, reply: &mut Reply) {
        if let Some(user) = self.user {
            reply.about.guarded.note_user(user);
        }
        if let Some(pass) = self.pass {
            pass.mark(reply);
        }
    }
}

/// The way that a request goes.
pub(crate) enum RequestDisposition {
    /// A file below this root, which the disk must be asked for.
    File(Arc<Root>),
    /// Perhaps a file beside the origin's scripts, which the disk must be asked for; otherwise what
    /// policy said.
    Beside(ReceiveVerdict),
    /// Perhaps a page on the disk, which must be asked for it; otherwise the other way.
    Page(Box<Self>),
    /// Past the store.
    Pass(ForwardReason),
    /// Past the store, and perhaps to another protocol.
    Upgrade,
    /// One fetch for everybody who asks meanwhile.
    Fetch {
        key: KeyBuf,
        /// The stored object, which is stale.
        old: Option<Arc<Object>>,
    },
    /// To the store, to make something in it untrue.
    Purge(Box<PurgeOrder>, Answers),
    /// On along the row of stages, once what it waits for there has come.
    Row(Box<ParkedRequest>),
    /// With this reply, once the invalidation that it tells of has been recorded.
    Recorded(Box<Reply>),
    /// A page that is to be put together first.
    Draft(Box<dyn Draft>),
    /// Through a site's program.
    Vcl(Box<HaltedRequest>),
    /// A fetch of its own, whose answer may be stored.
    Alone { key: KeyBuf, reason: ForwardReason },
}

impl Start {
    /// A page that is to be put together first.
    pub(crate) fn page(place: SiteContext<'_>, draft: Box<dyn Draft>) -> Self {
        Self::Slow(Box::new(WaitingRequest::on(place, RequestDisposition::Draft(draft))))
    }

    /// The reply, if it is made: of a page that is to be put together, too.
    #[inline(always)]
    pub(crate) fn reply(&mut self) -> Option<&mut Reply> {
        match self {
            Self::Reply(reply) => Some(reply),
            Self::Slow(slow) => match &mut slow.way {
                RequestDisposition::Draft(draft) => Some(draft.reply()),
                _ => None,
            },
        }
    }

    /// Puts a page together, as far as that goes without waiting.
    #[inline(never)]
    pub(crate) fn begin(self, core: &Rc<CoreState>) -> Self {
        let Self::Slow(mut slow) = self else { return self };
        slow.way = match slow.way {
            RequestDisposition::Draft(draft) => match draft.begin(core) {
                Ok(reply) => return Self::Reply(reply),
                Err(draft) => RequestDisposition::Draft(draft),
            },
            way => way,
        };
        Self::Slow(slow)
    }
}

impl WaitingRequest {
    /// A request that goes this way and has nothing of its own beside.
    pub(crate) fn on(SiteContext { live, site }: SiteContext<'_>, way: RequestDisposition) -> Self {
        Self {
            live: Rc::clone(live),
            site: Arc::clone(site),
            notes: Notes::default(),
            way,
            downstream: Downstream::Client,
            cookies: None,
            marks: Marks::default(),
        }
    }

    /// Bytes that it takes beside what every request that waits takes, about.
    pub fn memory(&self) -> u64 {
        if let RequestDisposition::Draft(draft) = &self.way { draft.memory() } else { 0 }
    }

    /// Returns true if the request may become a tunnel: the client asks for another protocol that
    /// it may have.
    pub fn is_upgrade(&self) -> bool {
        match &self.way {
            RequestDisposition::Upgrade => true,
            RequestDisposition::Row(parked) => parked.wants_tunnel(),
            RequestDisposition::Vcl(waiting) => waiting.is_upgrade(),
            _ => false,
        }
    }

    /// Returns true if nothing that is stored, or will be for others, answers.
    pub(crate) fn is_past_the_store(&self) -> bool {
        match &self.way {
            RequestDisposition::Vcl(waiting) => waiting.is_past_the_store(),
            RequestDisposition::Page(way) => !matches!(**way, RequestDisposition::Fetch { .. }),
            RequestDisposition::Fetch { .. } => false,
            _ => true,
        }
    }

    /// Returns true if a client that waits for a 100 gets it as an interim response, when its body
    /// is first asked for; otherwise its connection sends it.
    pub fn continues_late(&self) -> bool {
        matches!(&self.way, RequestDisposition::Vcl(waiting) if waiting.continues_late())
    }
}
