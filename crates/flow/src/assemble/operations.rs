//! Operations of a page in its order: texts and fragments that its instructions resolve to. Those
//! of a stored page are known at once, those of an arriving page as its bytes come.

use std::cell::Cell;
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;

use base::memory::HoldError;
use base::{Account, HeldBytes, Limit};
use bytes::Bytes;
use cache::Reader;
use codec::STEP_BYTES;
use esi::{Fragment, Node, PageResolver, PageText, Parser, ResolvedNode};

use super::document;
use super::environment::PageEnvironment;
use super::readahead::AssemblyReadahead;
use crate::state::assemble::{ComposedPage, ReadPage};
use crate::state::core::CoreState;

/// The page ends here, incomplete.
pub(super) struct PageTruncation;

/// The operations of a page for one request.
pub(super) struct Operations {
    page: Rc<ComposedPage>,
    run: PageResolver,
    nodes: Nodes,
    /// Nodes that were resolved, of those that are known.
    resolved: usize,
}

/// The nodes of a page.
enum Nodes {
    /// The page is sent unchanged.
    None,
    /// The page is complete.
    Read(Arc<ReadPage>),
    /// The page still arrives: the nodes that its last bytes brought.
    Arriving(Box<StreamedPage>),
}

/// A page that still arrives.
struct StreamedPage {
    reader: Reader,
    /// Bytes that have arrived and are not parsed yet.
    unread: Bytes,
    /// `None` at the end of the page.
    parser: Option<Parser>,
    nodes: Vec<Node>,
    text: UnsentText,
}

impl Operations {
    /// No operations: the page is sent unchanged.
    pub(super) fn none(page: &Rc<ComposedPage>) -> Self {
        Self::new(page, Nodes::None)
    }

    /// The operations of a complete page.
    pub(super) fn of_read(page: &Rc<ComposedPage>, read: &Arc<ReadPage>) -> Self {
        Self::new(page, Nodes::Read(Arc::clone(read)))
    }

    /// The operations of an arriving page.
    pub(super) fn of_arriving(page: &Rc<ComposedPage>, reader: Reader) -> Self {
        let (rules, limits) = document::reading(page.dialect, &page.live);
        let (parser, text) =
            (Parser::new(rules, limits), UnsentText::new(&page.context.top.account));
        let (unread, parser, nodes) = (Bytes::new(), Some(parser), Vec::new());
        let arriving = StreamedPage { reader, unread, parser, nodes, text };
        Self::new(page, Nodes::Arriving(Box::new(arriving)))
    }

    fn new(page: &Rc<ComposedPage>, nodes: Nodes) -> Self {
        let (_, limits) = document::reading(page.dialect, &page.live);
        Self { page: Rc::clone(page), run: PageResolver::new(limits), nodes, resolved: 0 }
    }

    /// The next operations that are known, up to a fragment on which the following ones depend.
    ///
    /// # Errors
    /// The page exceeds a limit.
    pub(super) fn known(&mut self, core: &CoreState) -> Result<Vec<ResolvedNode>, PageTruncation> {
        let (nodes, text) = match &self.nodes {
            Nodes::Read(read) => (read.document.nodes(), None),
            Nodes::Arriving(arriving) => {
                (&arriving.nodes[..], Some(&arriving.text as &dyn PageText))
            }
            Nodes::None => (&[][..], None),
        };
        let question = PageEnvironment::of(&self.page, core.now(), text);
        let mut ops = Vec::with_capacity(nodes.len() - self.resolved);
        while let Some(node) = nodes.get(self.resolved) {
            self.resolved += 1;
            if self.run.resolve(node, &question, &mut ops).is_err() {
                self.resolved = nodes.len();
                core.counters.limit(Limit::EsiNodes);
                return Err(PageTruncation);
            }
            if ops.last().is_some_and(is_awaited) {
                break;
            }
        }
        Ok(ops)
    }

    /// The next operations, once they are known. The bytes of the earlier ones count as `ahead`
    /// until they are sent.
    ///
    /// # Errors
    /// The page ends incomplete.
    pub(super) async fn next(
        &mut self,
        core: &CoreState,
        ahead: &AssemblyReadahead,
    ) -> Result<Option<Vec<ResolvedNode>>, PageTruncation> {
        loop {
            let ops = self.known(core)?;
            if !ops.is_empty() {
                return Ok(Some(ops));
            }
            let Nodes::Arriving(arriving) = &mut self.nodes else { return Ok(None) };
            if !arriving.read(core, &self.page, ahead).await? {
                return Ok(None);
            }
            self.resolved = 0;
        }
    }

    /// Sets the variable that a fragment was requested for.
    pub(super) fn assign(&mut self, name: &[u8], value: Vec<u8>) {
        self.run.assign(name, value);
    }
}

impl StreamedPage {
    /// Reads more of the page. False at its end.
    async fn read(
        &mut self,
        core: &CoreState,
        page: &ComposedPage,
        ahead: &AssemblyReadahead,
    ) -> Result<bool, PageTruncation> {
        let Some(parser) = &mut self.parser else { return Ok(false) };
        self.nodes.clear();
        self.text.drop_taken();
        if self.unread.is_empty() {
            match self.reader.next().await {
                Ok(Some(bytes)) => self.unread = bytes,
                Ok(None) => {
                    if let Some(parser) = self.parser.take() {
                        document::note(core, page, &parser.finish(&mut self.nodes));
                    }
                    return Ok(true);
                }
                Err(_) => return Err(PageTruncation),
            }
        }
        let step = self.unread.split_to(STEP_BYTES.min(self.unread.len()));
        if self.text.add(&step).is_err() {
            // The earlier pieces release their memory once they are sent.
            ahead.wait_until_idle().await;
            if self.text.add(&step).is_err() {
                core.counters.limit(Limit::ClientMemory);
                return Err(PageTruncation);
            }
        }
        parser.push(&step, &mut self.nodes);
        if self.text.bytes.len() as u64 > page.live.limits.esi_bytes {
            core.counters.limit(Limit::EsiBytes);
            page.note_ended(Limit::EsiBytes);
            return Err(PageTruncation);
        }
        Ok(true)
    }
}

/// Returns true if `op` is a fragment on which the following operations depend.
pub(super) fn is_awaited(op: &ResolvedNode) -> bool {
    matches!(op, ResolvedNode::Include(fragment) if decides(fragment))
}

/// Returns true if the operations after `fragment` depend on its reply.
pub(super) fn decides(fragment: &Fragment) -> bool {
    fragment.wait || fragment.set.is_some()
}

/// Bytes of an arriving page that belong to no operation yet, reserved for the client.
#[derive(Debug)]
struct UnsentText {
    bytes: Vec<u8>,
    /// The offset of the bytes in the page.
    from: u64,
    /// The end, in the page, of the operations taken.
    taken: Cell<u64>,
    held: HeldBytes,
}

impl UnsentText {
    /// An empty buffer, reserved on `account`.
    fn new(account: &Arc<Account>) -> Self {
        let held = account.hold_anyway(0);
        Self { bytes: Vec::new(), from: 0, taken: Cell::default(), held }
    }

    /// Appends bytes.
    ///
    /// # Errors
    /// There is no memory for them.
    fn add(&mut self, bytes: &[u8]) -> Result<(), HoldError> {
        let wanted = self.bytes.len() + bytes.len();
        if wanted > self.bytes.capacity() {
            let room = wanted.max(2 * self.bytes.capacity());
            self.held.grow(room as u64 - self.held.bytes())?;
            self.bytes.reserve_exact(room - self.bytes.len());
        }
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }

    /// Drops the bytes of operations that were taken.
    fn drop_taken(&mut self) {
        let taken = self.taken.get().max(self.from);
        self.bytes.drain(..(taken - self.from) as usize);
        self.from = taken;
    }
}

impl PageText for UnsentText {
    fn take(&self, range: &Range<u64>) -> Vec<u8> {
        self.taken.set(self.taken.get().max(range.end));
        let at = |offset: u64| (offset.saturating_sub(self.from) as usize).min(self.bytes.len());
        self.bytes[at(range.start)..at(range.end)].to_vec()
    }
}

#[cfg(test)]
mod tests {
    use base::MemoryBudget;

    use super::*;

    #[test]
    fn text_stays_until_operations_have_taken_what_follows_it() {
        let memory = MemoryBudget::new(1 << 20, 1 << 20);
        let mut text = UnsentText::new(&Account::open(&memory, 1 << 20));
        assert!(text.add(b"abcdef").is_ok());
        assert_eq!(text.take(&(1..4)), b"bcd");
        assert_eq!(text.take(&(0..2)), b"ab", "what comes first may be taken last");
        text.drop_taken();
        assert_eq!(text.bytes, b"ef");
        assert!(text.add(b"gh").is_ok());
        assert_eq!(text.take(&(4..8)), b"efgh");
        text.drop_taken();
        assert!(text.bytes.is_empty());
    }

    #[test]
    fn text_is_held_for_the_client() {
        let memory = MemoryBudget::new(1 << 20, 1 << 20);
        let account = Account::open(&memory, 1 << 20);
        let mut text = UnsentText::new(&account);
        assert!(text.add(&[0; 1000]).is_ok());
        assert_eq!(account.held(), 1000);
        assert!(text.add(&vec![0; 2 << 20]).is_err(), "there is not so much");
    }
}
