//! The counters, from one table: each core writes a block of its own, and readers add the blocks
//! up. A core must never write another core's block.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use crate::limits::{self, Limit};

/// The kind of a counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Only grows.
    Counter,
    /// Grows and shrinks.
    Gauge,
    /// The largest value of all cores.
    Peak,
}

/// One row of the table.
#[derive(Clone, Copy, Debug)]
pub struct CounterSpec {
    /// The counter.
    pub counter: Counter,
    /// Its name in `larder stat` and, after `larder_`, in `/metrics`.
    pub name: &'static str,
    /// Counter or gauge.
    pub kind: Kind,
    /// The help text of the counter.
    pub about: &'static str,
}

macro_rules! counters {
    ($($variant:ident $name:ident $kind:ident $about:expr;)*) => {
        /// Every counter by name.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(usize)]
        pub enum Counter { $(#[doc = $about] $variant,)* }

        /// The table of all counters.
        pub const TABLE: &[CounterSpec] = &[$(CounterSpec {
            counter: Counter::$variant,
            name: stringify!($name),
            kind: Kind::$kind,
            about: $about,
        },)*];
    };
}

counters! {
    Connections connections_total Counter "Client connections accepted.";
    ConnectionsOpen connections_open Gauge "Client connections open now.";
    AcceptErrors accept_errors_total Counter "Client connections that the system could not hand over, for want of descriptors for instance.";
    ConnectionsRefused connections_refused_total Counter "Client connections closed at once because of a limit.";
    ClosedByClient closed_by_client_total Counter "Client connections that the client ended.";
    ClosedAsAsked closed_as_asked_total Counter "Client connections ended because a request asked for that (`Connection: close`).";
    ClosedHttp10 closed_http10_total Counter "Client connections ended after a request of HTTP/1.0 that did not ask for more.";
    ClosedByReply closed_by_reply_total Counter "Client connections ended because the response, a limit or the end of this daemon asked for that.";
    ClosedByEnd closed_by_end_total Counter "Client connections whose end said where the response ended.";
    ClosedIdle closed_idle_total Counter "Client connections ended because no request came for too long, or none while this daemon ends.";
    ClosedTunnel closed_tunnel_total Counter "Client connections that ended as tunnels.";
    ClosedHead closed_slow_head_total Counter "Client connections ended because a request's head took too long.";
    ClosedMalformed closed_malformed_total Counter "Client connections ended because of a request's form, or for breaking the protocol.";
    ClosedTooLarge closed_too_large_total Counter "Client connections ended because a request's head was larger than a limit.";
    ClosedHttp2Off closed_http2_off_total Counter "Client connections ended because they began with HTTP/2, which is not switched on.";
    ClosedBody closed_body_total Counter "Client connections ended because a request's body was malformed, too large or too slow.";
    ClosedSending closed_sending_total Counter "Client connections ended because a response could not be sent to its end.";
    ClosedHandshake closed_handshake_total Counter "Client connections ended before their first request: their TLS handshake or PROXY header came to nothing.";
    ProxyRefused proxy_refused_total Counter "Connections to `proxy` listeners that came from nobody trusted.";
    ProxyErrors proxy_errors_total Counter "Connections of trusted proxies without a well-formed PROXY header.";
    TlsHandshakes tls_handshakes_total Counter "TLS handshakes completed with clients.";
    H2Connections h2_connections_total Counter "Client connections that spoke HTTP/2.";
    H2ProtocolErrors h2_protocol_errors_total Counter "HTTP/2 connections ended because the client broke the protocol or a limit.";
    TlsResumed tls_resumed_total Counter "TLS handshakes that went on from an earlier session.";
    Tls12 tls12_handshakes_total Counter "Of the handshakes completed, those of TLS 1.2; the others are of TLS 1.3.";
    TlsFailures tls_handshake_failures_total Counter "TLS handshakes with clients that came to nothing.";
    AcmeChallenges acme_challenges_total Counter "Questions of certificate authorities answered, over plain HTTP or in a handshake.";
    AcmeOrders acme_orders_total Counter "Certificates ordered from an authority.";
    AcmeFailures acme_failures_total Counter "Of these, orders that came to nothing.";
    OcspFetches ocsp_fetches_total Counter "Responders asked whether a certificate is good, for handshakes to show.";
    OcspFailures ocsp_failures_total Counter "Of these, those without an answer that could be shown.";
    AdminRequests admin_requests_total Counter "Requests to the admin listener, to `[health]` and `[metrics]`.";
    AdminRefused admin_refused_total Counter "Of these, refused: for want of a token or role, by their name or origin, or because they are not understood.";
    Requests requests_total Counter "Requests whose head was read whole and well-formed.";
    BadRequests bad_requests_total Counter "Requests refused for their form (4xx and close).";
    BadExpectations bad_expectations_total Counter "Of these, for an expectation other than `100-continue` (417).";
    Hits hits_total Counter "Answered from a fresh stored response.";
    StaleHits stale_hits_total Counter "Answered from a stale stored response within its grace, a fetch running behind it.";
    StaleOnError stale_on_error_total Counter "Answered from a stale stored response because the origin failed.";
    Misses misses_total Counter "Not stored, or no longer good: fetched from the origin.";
    Passes passes_total Counter "Sent to the origin by policy, without the cache.";
    HitForMiss hit_for_miss_total Counter "Fetched without waiting for others, a former answer having been uncacheable.";
    Collapsed collapsed_total Counter "Answered by another request's fetch.";
    PeersAsked peers_asked_total Counter "Misses for which another node of the cluster was asked, as it owns their keys.";
    PeersFound peers_found_total Counter "Of these, those that it had a response for.";
    PeersHits peers_hits_total Counter "Requests of other nodes that a stored response answered.";
    PeersFetches peers_fetches_total Counter "Requests of other nodes that a response answered which was fetched for them.";
    PeersRefused peers_refused_total Counter "Requests of other nodes that were not answered: the node asked ahead of what is applied here, or there was nothing that nodes share.";
    SiblingsAsked siblings_asked_total Counter "Misses for which siblings were asked by HTCP whether they have a response.";
    SiblingsFound siblings_found_total Counter "Of these, those that a sibling's response answered.";
    SiblingsFalse siblings_false_total Counter "Of these, those for which a sibling said yes and then had nothing that could be used: the origin was asked.";
    RevalidatedAnswers revalidated_answers_total Counter "Answered from a stored response that the origin had just confirmed by a 304.";
    Revalidated revalidated_total Counter "Stored responses made fresh again by a 304, for a client or in the background.";
    DiskHits disk_hits_total Counter "Lookups that found nothing in memory and a response on disk.";
    DiskLent disk_lent_total Counter "Of the hits on disk those that were answered from there without coming into memory, which is full of what is asked for more.";
    DiskMisses disk_misses_total Counter "Times that the disk was read for a request in vain: what it had was another's, was invalidated, was damaged, or came too late.";
    DiskSpoolsRefused disk_spools_refused_total Counter "Bodies that were to go to the disk while they came, and of which it took no more: they passed to those who had asked for them.";
    SpooledToFiles spooled_to_files_total Counter "Request bodies of unknown length that went to a file until their length could be told to a FastCGI server.";
    GateRemembered gate_remembered_total Counter "Requests that `basic_auth` and `forward_auth` let in by what was remembered.";
    GateChecked gate_checked_total Counter "Passwords that were checked.";
    GateAsked gate_asked_total Counter "Requests that the server of a `forward_auth` was asked about.";
    GateRefused gate_refused_total Counter "Requests that `basic_auth` answered with 401, or the server of a `forward_auth` with its own answer.";
    GateFailed gate_failed_total Counter "Requests that were refused because the server of a `forward_auth` could not be asked, or did not answer properly.";
    RateLimited rate_limited_total Counter "Requests refused because their client came more often than its site's `rate` allows.";
    RateQueued rate_queued_total Counter "Requests that waited for their turn by their site's `rate`.";
    ConcurrencyRefused concurrency_refused_total Counter "Requests refused because as many of their client were under way as its site's `concurrent` allows.";
    LimitsDryRun limits_dry_run_total Counter "Requests that a `rate` or `concurrent` with `dry_run` would have refused.";
    Files files_total Counter "Answered with a file.";
    Synthetic synthetic_total Counter "Answered by policy or error page.";
    Refused refused_total Counter "Answered with an error before a request was read whole.";
    Status2xx responses_2xx_total Counter "Responses sent with a 2xx status.";
    Status3xx responses_3xx_total Counter "Responses sent with a 3xx status.";
    Status4xx responses_4xx_total Counter "Responses sent with a 4xx status.";
    Status5xx responses_5xx_total Counter "Responses sent with a 5xx status.";
    HeadBytesIn request_head_bytes_total Counter "Bytes of requests' heads.";
    BodyBytesIn request_body_bytes_total Counter "Bytes of requests' bodies.";
    HeadBytesOut response_head_bytes_total Counter "Bytes of responses' heads.";
    BodyBytesOut response_body_bytes_total Counter "Bytes of responses' bodies.";
    BytesIn client_bytes_in_total Counter "Bytes read from clients.";
    BytesOut client_bytes_out_total Counter "Bytes written to clients.";
    Lingers lingers_total Counter "Connections whose client was still sending after the last response and was read off.";
    Aborted responses_aborted_total Counter "Responses cut before their end.";
    Tunnels tunnels_total Counter "Connections that changed their protocol (WebSocket).";
    TunnelsOpen tunnels_open Gauge "The same, open now.";
    TunnelBytesIn tunnel_bytes_in_total Counter "Bytes they carried from clients to origins.";
    TunnelBytesOut tunnel_bytes_out_total Counter "Bytes they carried from origins to clients.";
    LongTurns long_turns_total Counter "Times that a core did one thing for more than 100 ms, while everything else of that core waited.";
    LongestTurn longest_turn_ms Peak "The longest of them, and of shorter ones, in milliseconds, about.";
    Panics panics_total Counter "Requests ended by a bug (the request only).";
    Fetches origin_requests_total Counter "Requests sent to origins.";
    FetchFailures origin_failures_total Counter "Origin requests without a usable response.";
    OriginConnects origin_connects_total Counter "Connections opened to origins.";
    OriginReuse origin_reuse_total Counter "Origin requests sent over a kept connection.";
    OriginKept origin_kept_total Counter "Connections to origins kept for the next request.";
    OriginRetries origin_retries_total Counter "Origin requests tried again.";
    OriginBytesIn origin_bytes_in_total Counter "Bytes read from origins.";
    OriginLineFeeds origin_line_feeds_total Counter "Response heads of origins with lines that ended without CR, taken because of `lenient_origin`.";
    BodiesCoded bodies_coded_total Counter "Bodies coded here on their way into the store (by a program), or to a client.";
    BodiesDecoded bodies_decoded_total Counter "Bodies decoded on their way to a client that does not take their coding.";
    FormsMade forms_made_total Counter "Further forms made of stored bodies (gzip, brotli, zstd), behind requests.";
    FormsSent forms_sent_total Counter "Answers with such a form.";
    FormsSpared forms_spared_bytes_total Counter "Bytes by which such forms, and those made with a dictionary, were shorter than the stored bodies that they were sent for.";
    DeltasMade deltas_made_total Counter "Forms of stored bodies made with a dictionary that clients have (RFC 9842), behind requests.";
    DeltasSent deltas_sent_total Counter "Answers with such a form.";
    BodiesFolded bodies_folded_total Counter "Stored bodies whose place gzip took, as memory was full and no client had asked for them without a coding.";
    FoldedSaved bodies_folded_saved_bytes_total Counter "Bytes of memory that this saved, until they left memory.";
    CodingTime coding_time_us_total Counter "Microseconds of processor time in which further forms were made. See the limit `coding_time`.";
    Stores stores_total Counter "Responses that began to be stored. One whose body then breaks off is counted, too.";
    EsiPages esi_pages_total Counter "Pages that were put together of others (ESI, SSI).";
    EsiFragments esi_fragments_total Counter "Fragments of such pages that were answered.";
    EsiFailed esi_failed_total Counter "Fragments of such pages that are missing in them.";
    EsiErrors esi_errors_total Counter "Faults in the instructions of such pages.";
    StoreRefused store_refused_total Counter "Responses not stored for want of room.";
    SliceSets slice_sets_total Counter "Responses that began to be stored in slices.";
    SlicesFetched slices_fetched_total Counter "Slices of stored responses that were asked for one by one.";
    SlicesOfNodes slices_of_nodes_total Counter "Of these, those that another node had instead of the origin.";
    SlicesCut slices_cut_total Counter "Slices of stored responses that were cut from a response on its way.";
    SlicesJoined slices_joined_total Counter "Times that a client waited for a slice that was being fetched already.";
    SlicesFailed slices_failed_total Counter "Slices that did not come, or not whole.";
    SliceSetsChanged slice_sets_changed_total Counter "Responses in slices that ended because their origin had another version.";
    SliceSetsRefused slice_sets_refused_total Counter "Responses in slices that ended because their origin sent no range, or another one than it was asked for.";
    Invalidations invalidations_total Counter "Stored responses removed by invalidation or purge.";
    InvalidationsRecorded invalidations_recorded_total Counter "Invalidations of programs and after methods that are not safe that went to the disk's journal.";
    InvalidationsRefused invalidations_refused_total Counter "Invalidations that the journal did not record. None took effect, but for those after methods that are not safe.";
    Purges purges_total Counter "Purge requests of clients carried out.";
    PurgesRefused purges_refused_total Counter "Purge requests refused: from an address that may not, without the token, or malformed.";
    PurgesLost purges_without_site_total Counter "Purge requests that found no site: for one URL of a host that no site has.";
    CliCommands varnish_cli_commands_total Counter "Commands carried out on the Varnish CLI port.";
    CliRefused varnish_cli_refused_total Counter "Connections to the Varnish CLI port that were closed for a wrong answer to its challenge, or for HTTP.";
    HtcpClears htcp_clears_total Counter "URLs purged by HTCP datagrams.";
    HtcpTests htcp_tests_total Counter "HTCP datagrams that asked whether something is stored.";
    HtcpRefused htcp_refused_total Counter "HTCP datagrams refused: from an address that may not, for no site, or malformed.";
    NeighboursTold neighbours_told_total Counter "Invalidations that a neighbour (`[[neighbour]]`) has taken.";
    NeighboursFailed neighbours_failed_total Counter "Times that a neighbour did not take one; it is told again.";
    NeighboursLost neighbours_lost_total Counter "Invalidations that a neighbour was not told: it refused, or did not take them for too long, or too many waited.";
    NeighboursUnsaid neighbours_unsaid_total Counter "Invalidations that a neighbour was not told because its dialect has no word for them.";
    TraceSpans trace_spans_total Counter "Spans that the collector of traces has taken.";
    TraceDropped trace_spans_dropped_total Counter "Spans that were dropped: too many, or the collector refused them or did not take them in time; and records that were overwritten before they were looked at.";
    TraceRetries trace_retries_total Counter "Deliveries that the collector of traces did not take yet; they are tried again.";
    LogLost log_lost_total Counter "Access log lines dropped because the writer was behind, or could not be written: the disk is full.";
    ErrorLogLost error_log_lost_total Counter "Lines of the daemon's own log dropped because the writer was behind, or could not be written.";
    RingLost ring_lost_total Counter "Records that the log ring had no room for: its file system is full.";
}

const COUNTERS: usize = TABLE.len();
const CELLS: usize = COUNTERS + limits::TABLE.len();

/// The counters of one core, which alone writes them. Any thread may read.
#[derive(Debug)]
#[repr(align(128))] // two cache lines: neighbours prefetch in pairs
pub struct Counters {
    cells: [AtomicU64; CELLS],
}

impl Default for Counters {
    fn default() -> Self {
        Self { cells: std::array::from_fn(|_| AtomicU64::new(0)) }
    }
}

impl Counters {
    /// Adds one.
    pub fn inc(&self, counter: Counter) {
        self.add(counter, 1);
    }

    /// Adds `n`.
    pub fn add(&self, counter: Counter, n: u64) {
        bump(&self.cells[counter as usize], n);
    }

    /// Subtracts one from a gauge.
    pub fn dec(&self, counter: Counter) {
        bump(&self.cells[counter as usize], u64::MAX);
    }

    /// Raises a peak to `value`, if it is lower.
    pub fn peak(&self, counter: Counter, value: u64) {
        let cell = &self.cells[counter as usize];
        // The block has one writer.
        cell.store(cell.load(Ordering::Relaxed).max(value), Ordering::Relaxed);
    }

    /// Counts that `limit` was reached.
    pub fn limit(&self, limit: Limit) {
        bump(&self.cells[COUNTERS + limit as usize], 1);
    }

    /// The value of `counter` on this core.
    pub fn value(&self, counter: Counter) -> u64 {
        self.cells[counter as usize].load(Ordering::Relaxed)
    }
}

fn bump(cell: &AtomicU64, n: u64) {
    // The block has one writer, so a plain addition suffices. A lock prefix would cost more than
    // parsing a header.
    cell.store(cell.load(Ordering::Relaxed).wrapping_add(n), Ordering::Relaxed);
}

/// All cores' counters.
#[derive(Debug, Default)]
pub struct Registry {
    blocks: Mutex<Vec<Arc<Counters>>>,
}

impl Registry {
    /// A new block for the calling core.
    pub fn register(&self) -> Arc<Counters> {
        let block = Arc::new(Counters::default());
        self.blocks.lock().push(Arc::clone(&block));
        block
    }

    /// The sum of `counter` over all cores, or the largest value of a peak.
    pub fn sum(&self, counter: Counter) -> u64 {
        match TABLE[counter as usize].kind {
            Kind::Peak => {
                let blocks = self.blocks.lock();
                blocks.iter().map(|block| block.value(counter)).max().unwrap_or(0)
            }
            Kind::Counter | Kind::Gauge => self.sum_cell(counter as usize),
        }
    }

    /// The number of times that `limit` was reached.
    pub fn limit_sum(&self, limit: Limit) -> u64 {
        self.sum_cell(COUNTERS + limit as usize)
    }

    fn sum_cell(&self, cell: usize) -> u64 {
        let blocks = self.blocks.lock();
        blocks.iter().fold(0, |sum, b| sum.wrapping_add(b.cells[cell].load(Ordering::Relaxed)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_registry_adds_its_blocks_up() {
        let registry = Registry::default();
        let (a, b) = (registry.register(), registry.register());
        a.inc(Counter::Requests);
        b.add(Counter::Requests, 2);
        a.limit(Limit::HeaderBytes);
        assert_eq!(registry.sum(Counter::Requests), 3);
        assert_eq!(registry.limit_sum(Limit::HeaderBytes), 1);
        assert_eq!(registry.limit_sum(Limit::HeaderCount), 0);
    }

    #[test]
    fn a_peak_is_the_largest_of_all_cores() {
        let registry = Registry::default();
        let (a, b) = (registry.register(), registry.register());
        a.peak(Counter::LongestTurn, 7);
        b.peak(Counter::LongestTurn, 5);
        b.peak(Counter::LongestTurn, 3);
        assert_eq!(registry.sum(Counter::LongestTurn), 7);
    }

    #[test]
    fn a_gauge_shrinks_on_any_core() {
        let registry = Registry::default();
        let (a, b) = (registry.register(), registry.register());
        a.inc(Counter::ConnectionsOpen);
        b.dec(Counter::ConnectionsOpen);
        assert_eq!(registry.sum(Counter::ConnectionsOpen), 0);
    }
}
