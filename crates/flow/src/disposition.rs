//! Disposition of a request after the steps that do not wait: a reply, or the work that it waits
//! for.
//!
//! Holds data only; `slow_path` acts on it.

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
use crate::state::vcl::ExtraRequest;
use crate::state::vcl::halted_request::HaltedRequest;

/// The outcome of the steps that do not wait.
#[expect(clippy::large_enum_variant, reason = "a hit's reply is moved, never allocated")]
pub enum Start {
    /// The reply.
    Reply(Reply),
    /// The request must wait: call [`WaitingRequest::run`].
    Slow(Box<WaitingRequest>),
}

/// A request that must wait, without its [`Request`](message::Request), which the connection owns.
pub struct WaitingRequest {
    pub(crate) live: LiveRef,
    pub(crate) site: Arc<Site>,
    pub(crate) notes: Notes,
    pub(crate) disposition: RequestDisposition,
    pub(crate) downstream: Downstream,
    /// The request's original cookies, kept if its response may have fragments: the policy may have
    /// removed some.
    pub(crate) cookies: Option<Box<[u8]>>,
    /// The request's way through the VCL beside the site's settings.
    pub(crate) extra: Option<Rc<ExtraRequest>>,
    /// Marks for the reply.
    pub(crate) marks: Marks,
}

/// Marks that the stages of a request leave for its reply.
#[derive(Default)]
pub(crate) struct Marks {
    /// The permit of the site's limits, if it has an effect on the reply.
    pub(crate) limit_permit: Option<Box<LimitPermit>>,
    /// The authenticated user.
    pub(crate) user: Option<Arc<User>>,
}

impl Marks {
    /// Marks the outcome of the request.
    #[inline(always)]
    pub(crate) fn put(self, start: &mut Start) {
        if self.user.is_some() || self.limit_permit.is_some() {
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
        if let Some(limit_permit) = self.limit_permit {
            limit_permit.mark(reply);
        }
    }
}

/// The disposition of a request.
pub(crate) enum RequestDisposition {
    /// A file below this root; the disk must be read.
    File(Arc<Root>),
    /// A file beside the origin's scripts, for which the disk must be read, or else the policy's
    /// verdict.
    Beside(ReceiveVerdict),
    /// A plugin's page, for which the disk must be read, or else this other disposition.
    Page(Box<Self>),
    /// A fetch past the store.
    Pass(ForwardReason),
    /// A fetch past the store that may change the protocol.
    Upgrade,
    /// Part in the one fetch for the key.
    Fetch {
        key: KeyBuf,
        /// The stale stored object, if any.
        old: Option<Arc<Object>>,
    },
    /// A purge of the store.
    Purge(Box<PurgeOrder>, Answers),
    /// The row of stages, from the stage at which the request is parked.
    Row(Box<ParkedRequest>),
    /// This reply, once its invalidation is recorded in the journal.
    Recorded(Box<Reply>),
    /// A page that is assembled first.
    Draft(Box<dyn Draft>),
    /// The site's program.
    Vcl(Box<HaltedRequest>),
    /// A fetch without waiting for others, whose response may be stored.
    Alone { key: KeyBuf, reason: ForwardReason },
}

impl Start {
    /// The disposition of a page that is assembled first.
    pub(crate) fn page(site_ctx: SiteContext<'_>, draft: Box<dyn Draft>) -> Self {
        Self::Slow(Box::new(WaitingRequest::on(site_ctx, RequestDisposition::Draft(draft))))
    }

    /// The reply, if it is made: also that of a page to be assembled.
    #[inline(always)]
    pub(crate) fn reply(&mut self) -> Option<&mut Reply> {
        match self {
            Self::Reply(reply) => Some(reply),
            Self::Slow(slow) => match &mut slow.disposition {
                RequestDisposition::Draft(draft) => Some(draft.reply()),
                _ => None,
            },
        }
    }

    /// Assembles a page as far as possible without waiting.
    #[inline(never)]
    pub(crate) fn begin(self, core: &Rc<CoreState>) -> Self {
        let Self::Slow(mut slow) = self else { return self };
        slow.disposition = match slow.disposition {
            RequestDisposition::Draft(draft) => match draft.begin(core) {
                Ok(reply) => return Self::Reply(reply),
                Err(draft) => RequestDisposition::Draft(draft),
            },
            disposition => disposition,
        };
        Self::Slow(slow)
    }
}

impl WaitingRequest {
    /// A waiting request with this disposition and no marks.
    pub(crate) fn on(
        SiteContext { live, site }: SiteContext<'_>,
        disposition: RequestDisposition,
    ) -> Self {
        Self {
            live: Rc::clone(live),
            site: Arc::clone(site),
            notes: Notes::default(),
            disposition,
            downstream: Downstream::Client,
            cookies: None,
            extra: None,
            marks: Marks::default(),
        }
    }

    /// Bytes that the request takes, about, beside those of each waiting request.
    pub fn memory(&self) -> u64 {
        if let RequestDisposition::Draft(draft) = &self.disposition { draft.memory() } else { 0 }
    }

    /// Returns true if the connection may become a tunnel: the client asks for another protocol
    /// that it may use.
    pub fn is_upgrade(&self) -> bool {
        match &self.disposition {
            RequestDisposition::Upgrade => true,
            RequestDisposition::Row(parked) => parked.wants_tunnel(),
            RequestDisposition::Vcl(waiting) => waiting.is_upgrade(),
            _ => false,
        }
    }

    /// Returns true if no shared response, stored or to be stored, answers the request.
    pub(crate) fn is_past_the_store(&self) -> bool {
        match &self.disposition {
            RequestDisposition::Vcl(waiting) => waiting.is_past_the_store(),
            RequestDisposition::Page(disposition) => {
                !matches!(**disposition, RequestDisposition::Fetch { .. })
            }
            RequestDisposition::Fetch { .. } => false,
            _ => true,
        }
    }

    /// Returns true if the request has a part in the one fetch for its key.
    pub(crate) fn is_fetch(&self) -> bool {
        match &self.disposition {
            RequestDisposition::Vcl(waiting) => waiting.is_fetch(),
            RequestDisposition::Fetch { .. } => true,
            _ => false,
        }
    }

    /// Returns true if a client that expects a 100 gets it as an interim response once its body is
    /// first read; otherwise the connection sends the 100.
    pub fn continues_late(&self) -> bool {
        matches!(&self.disposition, RequestDisposition::Vcl(waiting) if waiting.continues_late())
    }
}
