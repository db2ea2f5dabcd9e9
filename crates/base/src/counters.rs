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
    AcceptErrors accept_errors_total Counter "Client connections that the system failed to accept, for example without free descriptors.";
    ConnectionsRefused connections_refused_total Counter "Client connections closed at once because of a limit.";
    ClosedByClient closed_by_client_total Counter "Client connections that the client ended.";
    ClosedAsAsked closed_as_asked_total Counter "Client connections ended on the request of the client (`Connection: close`).";
    ClosedHttp10 closed_http10_total Counter "Client connections ended after a request of HTTP/1.0 without keep-alive.";
    ClosedByReply closed_by_reply_total Counter "Client connections ended by the response, a limit or the end of this daemon.";
    ClosedByEnd closed_by_end_total Counter "Client connections whose end marked the end of the response.";
    ClosedIdle closed_idle_total Counter "Client connections ended because they were idle for too long, or idle at the end of this daemon.";
    ClosedTunnel closed_tunnel_total Counter "Client connections that ended as tunnels.";
    ClosedHead closed_slow_head_total Counter "Client connections ended because a request's head took too long.";
    ClosedMalformed closed_malformed_total Counter "Client connections ended because of a request's form, or for breaking the protocol.";
    ClosedTooLarge closed_too_large_total Counter "Client connections ended because a request's head was larger than a limit.";
    ClosedHttp2Off closed_http2_off_total Counter "Client connections ended because they began with HTTP/2, which is not switched on.";
    ClosedBody closed_body_total Counter "Client connections ended because a request's body was malformed, too large or too slow.";
    ClosedSending closed_sending_total Counter "Client connections ended because a response could not be sent to its end.";
    ClosedHandshake closed_handshake_total Counter "Client connections ended before their first request: their TLS handshake or PROXY header failed.";
    ProxyRefused proxy_refused_total Counter "Connections to `proxy` listeners from untrusted addresses.";
    ProxyErrors proxy_errors_total Counter "Connections of trusted proxies without a well-formed PROXY header.";
    TlsHandshakes tls_handshakes_total Counter "TLS handshakes completed with clients.";
    H2Connections h2_connections_total Counter "Client connections that spoke HTTP/2.";
    H2ProtocolErrors h2_protocol_errors_total Counter "HTTP/2 connections ended because the client broke the protocol or a limit.";
    TlsResumed tls_resumed_total Counter "TLS handshakes that resumed an earlier session.";
    Tls12 tls12_handshakes_total Counter "Of the handshakes completed, those of TLS 1.2; the others are of TLS 1.3.";
    TlsFailures tls_handshake_failures_total Counter "TLS handshakes with clients that failed.";
    AcmeChallenges acme_challenges_total Counter "Challenges of certificate authorities answered, over plain HTTP or in a handshake.";
    AcmeOrders acme_orders_total Counter "Certificates ordered from an authority.";
    AcmeFailures acme_failures_total Counter "Of these, orders that failed.";
    OcspFetches ocsp_fetches_total Counter "OCSP requests to responders, for stapling.";
    OcspFailures ocsp_failures_total Counter "Of these, those without a response that could be stapled.";
    AdminRequests admin_requests_total Counter "Requests to the admin listener, to `[health]` and `[metrics]`.";
    AdminRefused admin_refused_total Counter "Of these, rejected: without the token or role, because of their host name or origin, or malformed.";
    Requests requests_total Counter "Requests whose head was read whole and well-formed.";
    BadRequests bad_requests_total Counter "Malformed requests, which were rejected (4xx and close).";
    BadExpectations bad_expectations_total Counter "Of these, for an expectation other than `100-continue` (417).";
    Hits hits_total Counter "Answered from a fresh stored response.";
    StaleHits stale_hits_total Counter "Answered from a stale stored response in grace, while a background fetch renewed it.";
    StaleOnError stale_on_error_total Counter "Answered from a stale stored response because the origin failed.";
    Misses misses_total Counter "Fetched from the origin, because no stored response could be used.";
    Passes passes_total Counter "Sent to the origin by policy, without the cache.";
    HitForMiss hit_for_miss_total Counter "Fetched without waiting for another request, because the last response of the key could not be stored.";
    Collapsed collapsed_total Counter "Answered by another request's fetch.";
    PeersAsked peers_asked_total Counter "Misses for which the node of the cluster that owns the key was asked.";
    PeersFound peers_found_total Counter "Of these, those for which the node had a response.";
    PeersHits peers_hits_total Counter "Requests of other nodes that a stored response answered.";
    PeersFetches peers_fetches_total Counter "Requests of other nodes that were answered by a fetch.";
    PeersRefused peers_refused_total Counter "Requests of other nodes that were rejected: the node was ahead of the invalidations applied here, or there was no response that nodes may share.";
    SiblingsAsked siblings_asked_total Counter "Misses for which siblings were queried by HTCP.";
    SiblingsFound siblings_found_total Counter "Of these, those that a sibling's response answered.";
    SiblingsFalse siblings_false_total Counter "Of these, false hits: a sibling reported a response and then had no usable one, so the origin was asked.";
    RevalidatedAnswers revalidated_answers_total Counter "Answered from a stored response that the origin had just confirmed by a 304.";
    Revalidated revalidated_total Counter "Stored responses renewed by a 304, for a client or in the background.";
    DiskHits disk_hits_total Counter "Lookups that found nothing in memory and a response on disk.";
    DiskLent disk_lent_total Counter "Of the hits on disk, those that were served from disk without promotion, because memory was full of more popular responses.";
    DiskMisses disk_misses_total Counter "Reads of the disk for a request without a usable response: it had another key, was invalidated, damaged or late.";
    DiskSpoolsRefused disk_spools_refused_total Counter "Bodies that the disk stopped accepting while they arrived. They were delivered, and not stored.";
    SpooledToFiles spooled_to_files_total Counter "Request bodies of unknown length that were spooled to a file, because FastCGI requires the length.";
    GateRemembered gate_remembered_total Counter "Requests that `basic_auth` and `forward_auth` permitted by a cached result.";
    GateChecked gate_checked_total Counter "Passwords that were checked.";
    GateAsked gate_asked_total Counter "Requests to the server of a `forward_auth`.";
    GateRefused gate_refused_total Counter "Requests that `basic_auth` answered with 401, or the server of a `forward_auth` with its own answer.";
    GateFailed gate_failed_total Counter "Requests that were rejected because the server of a `forward_auth` could not be reached, or sent an invalid response.";
    RateLimited rate_limited_total Counter "Requests rejected because their client exceeded the `rate` of its site.";
    RateQueued rate_queued_total Counter "Requests delayed by the `rate` of their site.";
    ConcurrencyRefused concurrency_refused_total Counter "Requests rejected because their client had reached the `concurrent` limit of its site.";
    LimitsDryRun limits_dry_run_total Counter "Requests that a `rate` or `concurrent` with `dry_run` would have rejected.";
    HumanRequests class_human_requests_total Counter "Requests of browsers, on sites that use classes of clients.";
    HumanHits class_human_hits_total Counter "Of these, those that a stored response answered.";
    HumanFetches class_human_fetches_total Counter "Of these, those for which the origin was asked.";
    SearchRequests class_search_requests_total Counter "Requests of verified search engines, on sites that use classes of clients.";
    SearchHits class_search_hits_total Counter "Of these, those that a stored response answered.";
    SearchFetches class_search_fetches_total Counter "Of these, those for which the origin was asked.";
    AiRequests class_ai_requests_total Counter "Requests of crawlers and agents of language models, on sites that use classes of clients.";
    AiHits class_ai_hits_total Counter "Of these, those that a stored response answered.";
    AiFetches class_ai_fetches_total Counter "Of these, those for which the origin was asked.";
    ToolRequests class_tool_requests_total Counter "Requests of tools, on sites that use classes of clients.";
    ToolHits class_tool_hits_total Counter "Of these, those that a stored response answered.";
    ToolFetches class_tool_fetches_total Counter "Of these, those for which the origin was asked.";
    UnknownRequests class_unknown_requests_total Counter "Requests of unknown clients, on sites that use classes of clients.";
    UnknownHits class_unknown_hits_total Counter "Of these, those that a stored response answered.";
    UnknownFetches class_unknown_fetches_total Counter "Of these, those for which the origin was asked.";
    CrawlersQueued crawlers_queued_total Counter "Requests with `serve = \"stored\"` whose fetch waited in the queue for crawlers.";
    CrawlersRefused crawlers_refused_total Counter "Requests with `serve = \"stored\"` that were rejected, because the queue for crawlers was full.";
    SignaturesTrue signatures_true_total Counter "Requests with a valid signature of an agent in `[crawlers] signatures`.";
    SignaturesFalse signatures_false_total Counter "Requests that claimed the signature of such an agent, and whose signature was false, incomplete or had expired. Their client is `unknown`.";
    SignaturesOpen signatures_open_total Counter "Requests that claimed the signature of such an agent, and whose signature could not be verified: the key or the algorithm is not known, something is signed that Larder cannot rebuild, or `signature_checks` were verified in that second.";
    KeyDirectoryFetches key_directory_fetches_total Counter "Fetches of key directories of agents.";
    KeyDirectoryFailures key_directory_failures_total Counter "Of these, those that failed. The keys stay as they were.";
    WarmFetched warm_fetched_total Counter "URLs that were warmed: their responses were fetched before a visitor asked for them, and are stored.";
    WarmFresh warm_fresh_total Counter "URLs that were to be warmed, of which a fresh response was stored already.";
    WarmUnstored warm_unstored_total Counter "URLs that were to be warmed, whose responses may not be stored for all visitors.";
    WarmFailed warm_failed_total Counter "URLs that were to be warmed, whose origin failed.";
    WarmDropped warm_dropped_total Counter "URLs that were to be warmed, and had no place or were stopped.";
    RefreshedAhead refreshed_ahead_total Counter "Background fetches of fresh stored responses that are popular and near their end (`refresh_ahead`).";
    PrefetchesRefused prefetches_refused_total Counter "Prefetches (`Sec-Purpose: prefetch`) that were rejected, because the origin had no place for a request.";
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
    Lingers lingers_total Counter "Connections whose client was still sending after the last response, and which were drained.";
    Aborted responses_aborted_total Counter "Responses that ended early.";
    Tunnels tunnels_total Counter "Connections that changed their protocol (WebSocket).";
    TunnelsOpen tunnels_open Gauge "Tunnels open now.";
    TunnelBytesIn tunnel_bytes_in_total Counter "Bytes that tunnels carried from clients to origins.";
    TunnelBytesOut tunnel_bytes_out_total Counter "Bytes that tunnels carried from origins to clients.";
    LongTurns long_turns_total Counter "Times that a core ran one task for more than 100 ms, while all other tasks of the core waited.";
    LongestTurn longest_turn_ms Peak "The longest run of one task on a core, in milliseconds, approximately.";
    Panics panics_total Counter "Requests ended by a bug (the request only).";
    Fetches origin_requests_total Counter "Requests sent to origins.";
    FetchFailures origin_failures_total Counter "Origin requests without a usable response.";
    OriginConnects origin_connects_total Counter "Connections opened to origins.";
    OriginReuse origin_reuse_total Counter "Origin requests sent over a kept connection.";
    OriginKept origin_kept_total Counter "Connections to origins kept for the next request.";
    Mirrored mirrored_total Counter "Copies of requests sent to an origin that `mirror` names.";
    MirrorFailures mirror_failures_total Counter "Copies of requests without a usable response.";
    VerifiedSame verified_same_total Counter "Hits that `verify` compared with the origin's response, which was equal.";
    VerifiedChanged verified_changed_total Counter "Hits that `verify` compared, whose page had changed at the origin for all visitors.";
    VerifiedDiffering verified_differing_total Counter "Hits that `verify` compared, whose page is another one for this visitor: the cache served a wrong page.";
    VerifiedUnsteady verified_unsteady_total Counter "Hits that `verify` compared, whose page is another one at every request, so that nothing can be said.";
    VerifyFailures verify_failures_total Counter "Hits that `verify` could not compare, as the origin gave no comparable response.";
    VerifyPasses verify_passes_total Counter "Requests that bypassed the cache because of a cookie by which `verify` saw pages differ.";
    WebhooksSent webhooks_sent_total Counter "Findings of `verify` that the receiver of `[webhook]` has taken.";
    WebhooksFailed webhooks_failed_total Counter "Findings of `verify` that the receiver of `[webhook]` has not taken, however often they were sent.";
    OriginRetries origin_retries_total Counter "Origin requests tried again.";
    OriginBytesIn origin_bytes_in_total Counter "Bytes read from origins.";
    OriginLineFeeds origin_line_feeds_total Counter "Response heads of origins with lines that ended without CR, taken because of `lenient_origin`.";
    BodiesCoded bodies_coded_total Counter "Bodies coded for the store (by a program) or for a client.";
    BodiesDecoded bodies_decoded_total Counter "Bodies decoded for a client that does not accept their coding.";
    FormsMade forms_made_total Counter "Further forms of stored bodies (gzip, brotli, zstd) made in the background.";
    FormsSent forms_sent_total Counter "Answers with such a form.";
    FormsSpared forms_spared_bytes_total Counter "Bytes by which such forms, and those made with a dictionary, were shorter than the stored bodies that they were sent for.";
    DeltasMade deltas_made_total Counter "Forms of stored bodies made in the background with a dictionary that clients have (RFC 9842).";
    DeltasSent deltas_sent_total Counter "Answers with such a form.";
    BodiesFolded bodies_folded_total Counter "Stored bodies replaced by their gzip form, because memory was full and no client had asked for them without a coding.";
    FoldedSaved bodies_folded_saved_bytes_total Counter "Bytes of memory saved by that, over all replaced bodies.";
    CodingTime coding_time_us_total Counter "Microseconds of processor time in which further forms were made. See the limit `coding_time`.";
    Stores stores_total Counter "Responses that began to be stored, including those whose body broke off later.";
    EsiPages esi_pages_total Counter "Assembled pages (ESI, SSI).";
    EsiFragments esi_fragments_total Counter "Fragments of assembled pages that were answered.";
    EsiFailed esi_failed_total Counter "Fragments of assembled pages that failed.";
    EsiErrors esi_errors_total Counter "Faults in the instructions of assembled pages.";
    StoreRefused store_refused_total Counter "Responses not stored for lack of memory.";
    SliceSets slice_sets_total Counter "Responses that began to be stored in slices.";
    SlicesFetched slices_fetched_total Counter "Slices of stored responses that were fetched one by one.";
    SlicesOfNodes slices_of_nodes_total Counter "Of these, those that another node served instead of the origin.";
    SlicesCut slices_cut_total Counter "Slices of stored responses that were cut from a response while it arrived.";
    SlicesJoined slices_joined_total Counter "Times that a client waited for a slice that was being fetched already.";
    SlicesFailed slices_failed_total Counter "Slices that failed, or were incomplete.";
    SliceSetsChanged slice_sets_changed_total Counter "Responses in slices that ended because their origin had another version.";
    SliceSetsRefused slice_sets_refused_total Counter "Responses in slices that ended because their origin sent no range, or a different one.";
    Invalidations invalidations_total Counter "Stored responses removed by invalidation or purge.";
    InvalidationsRecorded invalidations_recorded_total Counter "Invalidations by programs and by unsafe methods that were written to the disk's journal.";
    InvalidationsRefused invalidations_refused_total Counter "Invalidations that the journal rejected. They had no effect, except those by unsafe methods.";
    Purges purges_total Counter "Purge requests of clients carried out.";
    PurgesRefused purges_refused_total Counter "Purge requests rejected: from an address without permission, without the token, or malformed.";
    PurgesLost purges_without_site_total Counter "Purge requests for one URL of a host that belongs to no site.";
    CliCommands varnish_cli_commands_total Counter "Commands carried out on the Varnish CLI port.";
    CliRefused varnish_cli_refused_total Counter "Connections to the Varnish CLI port that were closed after failed authentication, or because they spoke HTTP.";
    HtcpClears htcp_clears_total Counter "URLs purged by HTCP datagrams.";
    HtcpTests htcp_tests_total Counter "HTCP datagrams that queried a stored response.";
    HtcpRefused htcp_refused_total Counter "HTCP datagrams rejected: from an address without permission, for no site, or malformed.";
    NeighboursTold neighbours_told_total Counter "Invalidations that a neighbour (`[[neighbour]]`) has accepted.";
    NeighboursFailed neighbours_failed_total Counter "Failed deliveries of an invalidation to a neighbour, which are repeated.";
    NeighboursLost neighbours_lost_total Counter "Invalidations that were dropped for a neighbour: it rejected them, did not accept them in time, or its queue was full.";
    NeighboursUnsaid neighbours_unsaid_total Counter "Invalidations that were not sent to a neighbour because its dialect cannot express them.";
    TraceSpans trace_spans_total Counter "Spans that the collector of traces has accepted.";
    TraceDropped trace_spans_dropped_total Counter "Spans that were dropped: too many, rejected by the collector or not accepted in time; and records that were overwritten before they were read.";
    TraceRetries trace_retries_total Counter "Failed deliveries to the collector of traces, which are repeated.";
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
