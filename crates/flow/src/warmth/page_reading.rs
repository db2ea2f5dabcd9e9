//! Page reading: the body of a page of a site, for readers inside the daemon, such as of a sitemap.

use std::rc::Rc;
use std::sync::Arc;

use base::Limit;
use bytes::Bytes;
use message::{HeaderId, Status, target};

use super::client_of;
use crate::disposition::Start;
use crate::stage::Entrant;
use crate::stage_row;
use crate::state::body::{BodyPart, BodyParts, ReplyBody};
use crate::state::core::CoreState;
use crate::state::downstream::Downstream;
use crate::state::reply::Reply;
use crate::state::request_context::RequestConnection;
use crate::state::site_context::SiteContext;
use crate::state::warmth::ReadingOrder;

/// Bytes of a file that are read at once.
const FILE_BYTES: u64 = 64 * 1024;

impl CoreState {
    /// Carries out an order to read a page.
    pub(super) async fn read_page(self: &Rc<Self>, order: ReadingOrder) {
        let ReadingOrder { url, most_bytes, tell } = order;
        let live = self.live();
        let mut request = url.request();
        request.headers.set(HeaderId::AcceptEncoding, b"identity");
        let site = live.sites.by_host.find(&request.host);
        let Some(site) = site.filter(|site| site.client_check.is_none()) else {
            _ = tell.send(Err("no site has this host".to_owned()));
            return;
        };
        if site.vcl.is_none() {
            target::canonical(&mut request);
        }
        let site_ctx = SiteContext { live: &live, site };
        let (client, now) = (&client_of(self), self.now());
        let entrant = Entrant { site_ctx, client, now, downstream: &Downstream::Warmth };
        let mut asked = request.clone();
        let Some(clearance) = stage_row::pass(self, &entrant, &mut asked) else {
            _ = tell.send(Err("it is not for all visitors".to_owned()));
            return;
        };
        let reply = match self.receive(&entrant, &mut asked, clearance.admission.as_ref()).0 {
            Start::Reply(reply) => reply,
            Start::Slow(slow) => {
                let account = Arc::clone(&self.background);
                let connection = RequestConnection::of(&account);
                Box::pin(slow.run(self, &asked, None, connection)).await
            }
        };
        // The asker may have left.
        _ = tell.send(body_of(self, reply, most_bytes).await);
    }
}

/// The body of a reply, up to this many bytes.
///
/// # Errors
/// The reason why it cannot be had.
async fn body_of(core: &CoreState, mut reply: Reply, most_bytes: u64) -> Result<Vec<u8>, String> {
    if reply.status != Status::OK {
        return Err(format!("answered with status {}", reply.status));
    }
    let mut body = Vec::new();
    let mut push = |bytes: &[u8]| {
        body.extend_from_slice(bytes);
        match body.len() as u64 <= most_bytes {
            true => Ok(()),
            false => {
                core.counters.limit(Limit::SitemapBytes);
                Err("it is larger than `sitemap_bytes`".to_owned())
            }
        }
    };
    let cut = |_| "its body was cut off".to_owned();
    match std::mem::replace(&mut reply.body, ReplyBody::None) {
        ReplyBody::Parts(parts) => read_parts(parts, &mut push).await?,
        ReplyBody::Stream { mut reader, .. } => {
            if !reader.unpark() {
                return Err("its body was cut off".to_owned());
            }
            while let Some(bytes) = reader.next().await.map_err(cut)? {
                push(&bytes)?;
            }
        }
        ReplyBody::None | ReplyBody::Head(_) | ReplyBody::Tunnel(_) => {}
    }
    Ok(body)
}

async fn read_parts(
    parts: BodyParts,
    push: &mut impl FnMut(&[u8]) -> Result<(), String>,
) -> Result<(), String> {
    for part in parts {
        match part {
            BodyPart::Bytes(bytes) => push(&bytes)?,
            BodyPart::Stored(object, range) => {
                let whole = object.whole().ok_or("its body has left the store")?;
                whole.range(range).into_iter().try_for_each(&mut *push)?;
            }
            BodyPart::File(file, range) => {
                let mut at = range.start;
                while at < range.end {
                    let (file, end) = (Arc::clone(&file), range.end.min(at + FILE_BYTES));
                    let read = rt::run_blocking(move || file.read(at..end)).await;
                    let bytes: Bytes = read.map_err(|error| error.to_string())?.into();
                    if bytes.is_empty() {
                        return Err("the file has become shorter".to_owned());
                    }
                    at += bytes.len() as u64;
                    push(&bytes)?;
                }
            }
        }
    }
    Ok(())
}

/// Reads the body of a reply to its end, so that the whole is stored, a page's fragments included.
/// Returns its length; `None` if it was cut off.
pub(super) async fn drain(reply: &mut Reply) -> Option<u64> {
    match std::mem::replace(&mut reply.body, ReplyBody::None) {
        ReplyBody::Stream { mut reader, .. } => {
            let mut length = 0;
            // Others may have read the beginning: they read the rest, too.
            if reader.unpark() {
                while let Some(bytes) = reader.next().await.ok()? {
                    length += bytes.len() as u64;
                }
            }
            Some(length)
        }
        body => body.length(),
    }
}
