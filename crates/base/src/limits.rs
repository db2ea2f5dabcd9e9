//! The one table of limits: name, default, unit, meaning. Settings (`[limits]` in larder.toml),
//! counters (`limit_hits{limit="..."}`) and the reference page are generated from it.

use crate::units::{self, Bytes, DurationMs};

/// In what a limit is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Bytes; written `64KiB`.
    Bytes,
    /// Milliseconds; written `10s`.
    Ms,
    /// Bytes per second; written `1KiB`.
    BytesPerSecond,
    /// A plain number.
    Count,
    /// Percent of something the description names.
    Percent,
}

/// One row of the table.
#[derive(Clone, Copy, Debug)]
pub struct LimitSpec {
    /// The limit.
    pub limit: Limit,
    /// Its name in settings, counters and messages.
    pub name: &'static str,
    /// Its unit.
    pub unit: Unit,
    /// Its default, in its unit.
    pub default: u64,
    /// Its name in messages about a configuration: `[limits] name`.
    pub setting: &'static str,
    /// Least value that works, in its unit.
    pub least: u64,
    /// Largest value that works, in its unit.
    pub most: u64,
    /// Each node of a cluster has its own: it concerns the node's machine, or takes a restart.
    pub is_own: bool,
    /// A reload does not change it.
    pub takes_restart: bool,
    /// A description of what the limit bounds and what happens beyond it.
    pub about: &'static str,
}

macro_rules! limits {
    ($($variant:ident $name:ident $unit:ident $default:expr, $about:expr
        $(, $more:ident($($value:expr),*))*;)*) => {
        /// Every limit by name.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Limit { $(#[doc = $about] $variant,)* }

        /// The limits in force.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct Limits { $(#[doc = $about] pub $name: u64,)* }

        /// The table itself.
        pub const TABLE: &[LimitSpec] = &[$(LimitSpec {
            limit: Limit::$variant,
            name: stringify!($name),
            unit: Unit::$unit,
            default: $default,
            setting: concat!("[limits] ", stringify!($name)),
            least: Unit::$unit.least(),
            most: Unit::$unit.most(),
            is_own: false,
            takes_restart: false,
            about: $about,
        }$(.$more($($value),*))*,)*];

        impl Default for Limits {
            fn default() -> Self {
                Self { $($name: $default,)* }
            }
        }

        impl Limits {
            /// The field of `limit`.
            pub fn slot(&mut self, limit: Limit) -> &mut u64 {
                match limit { $(Limit::$variant => &mut self.$name,)* }
            }

            /// The value of `limit`.
            pub fn value(&self, limit: Limit) -> u64 {
                match limit { $(Limit::$variant => self.$name,)* }
            }
        }
    };
}

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;
const YEAR_MS: u64 = 365 * 24 * 3_600_000;
const COUNT_MAX: u64 = u32::MAX as u64;

impl Unit {
    /// Least value that works where the limit's row says nothing. A row with `least(0)` allows 0:
    /// no wait, or no limit, as its text says.
    const fn least(self) -> u64 {
        match self {
            Self::Ms => 1,
            _ => 0,
        }
    }

    /// Largest value that works where the limit's row says nothing.
    const fn most(self) -> u64 {
        match self {
            Self::Ms => YEAR_MS,
            Self::Bytes | Self::BytesPerSecond => 1 << 50,
            Self::Count => COUNT_MAX,
            Self::Percent => 100,
        }
    }
}

/// Further words of a row.
impl LimitSpec {
    const fn least(self, least: u64) -> Self {
        Self { least, ..self }
    }

    const fn most(self, most: u64) -> Self {
        Self { most, ..self }
    }

    const fn own(self) -> Self {
        Self { is_own: true, ..self }
    }

    const fn at_start(self) -> Self {
        Self { takes_restart: true, ..self.own() }
    }
}

limits! {
    // A header block's offsets have 32 bits and the length of a name 16: these leave room.
    HeaderBytes header_bytes Bytes 32 * KIB, "Request head in all, and response head where `response_header_bytes` is 0; beyond it 431 (request) or 502 (response).", least(KIB), most(16 * MIB);
    HeaderFieldBytes header_field_bytes Bytes 8 * KIB, "One header field, name and value, of a response where `response_field_bytes` is 0; beyond it 431 or 502.", least(256), most(63 * KIB);
    ResponseHeaderBytes response_header_bytes Bytes 0, "Head of an origin's response in all; beyond it 502. 0: as `header_bytes`.", most(16 * MIB);
    ResponseFieldBytes response_field_bytes Bytes 0, "One header field of an origin's response, name and value; beyond it 502. 0: as `header_field_bytes`.", most(63 * KIB);
    HeaderCount header_count Count 100, "Header fields of one head; beyond it 431 or 502.", least(8), most(10_000);
    TargetBytes target_bytes Bytes 8 * KIB, "Request target; beyond it 414.", least(128), most(MIB);
    TrailerBytes trailer_bytes Bytes 8 * KIB, "Trailer section of a chunked body in all; beyond it 400 or 502.", most(MIB);
    HeaderTimeout header_timeout Ms 10_000, "From the first byte of a request head to its last; beyond it 408 and close. As long may a PROXY header take.";
    ProxyHeaderBytes proxy_header_bytes Bytes 4 * KIB, "Header of the PROXY protocol (version 2) with everything in it; beyond it the connection is closed.";
    HandshakeTimeout handshake_timeout Ms 10_000, "From a TLS connection's beginning to the end of its handshake; then it is closed.";
    Handshakes handshakes Count 1_000, "TLS handshakes under way on one core; beyond it the oldest is closed.";
    IdleTimeout idle_timeout Ms 30_000, "A kept-alive client connection without a request; then it is closed.";
    DrainTime drain_time Ms 30_000, "Requests under way at a stop; then they are cut.", least(0);
    DrainWait drain_wait Ms 1_000, "At a stop, a connection that has not sent anything yet, counted from its beginning; then it is closed.";
    BodyTimeout body_timeout Ms 30_000, "A request body without a new byte; beyond it 408 and close.";
    BodyMinRate body_min_rate BytesPerSecond KIB, "Slowest request body after body_rate_leeway; below it 408 and close, over HTTP/2 the end of its stream.";
    BodyRateLeeway body_rate_leeway Ms 10_000, "How long a request body may be slower than body_min_rate.", least(0);
    SendTimeout send_timeout Ms 30_000, "A response of which the client takes no byte; then the connection is closed.";
    ResponseTime response_time Ms 0, "Sending one response, from its first byte to its last; then the connection is closed, over HTTP/2 its stream ends. 0: no limit.", least(0);
    SendMinRate send_min_rate BytesPerSecond KIB, "Slowest client after send_rate_leeway; below it the connection is closed, over HTTP/2 the stream ends whose window is that slow.";
    SendRateLeeway send_rate_leeway Ms 60_000, "How long a response may be taken more slowly than send_min_rate.", least(0);
    LingerTime linger_time Ms 30_000, "Reading off what a client still sends after the last response of a connection, in all; then the connection is closed.";
    HalfCloseTimeout half_close_timeout Ms 5_000, "Wait for the response to a client that has ended its sending side within a second of its request; then it counts as gone.";
    LingerTimeout linger_timeout Ms 5_000, "The same without a new byte; then the connection is closed. Over HTTP/2 also the wait until a client has read a response that came before its request's end; then it is asked to end the request.", least(0);
    DrainBytes drain_bytes Bytes 64 * KIB, "Unread request body read off to keep a connection; beyond it the connection ends with the response. An HTTP/2 connection that has ended is read off as long, and for one window more.";
    KeepaliveRequests keepalive_requests Count 10_000, "Requests of one client connection; the last one is answered with `Connection: close`.", least(1);
    ConnectionLifetime connection_lifetime Ms 3_600_000, "Age of a client connection beyond which the next response closes it.";
    Connections connections Count 0, "Client connections in all; beyond it new ones are closed at once. 0: four fifths of the process's file descriptors, those of `descriptors_reserve` apart.";
    DescriptorsReserve descriptors_reserve Count 64, "File descriptors kept back for operators (the admin socket, Varnish's CLI): what clients, origins and files would take of them is refused.", own();
    ConnectionsPerIp connections_per_ip Count 256, "Client connections of one IPv4 address or IPv6 /64, loopback apart; beyond it new ones are closed at once. 0: no limit.";
    RequestBodyBytes request_body_bytes Bytes GIB, "One request body; beyond it 413.";
    BodyBufferBytes body_buffer_bytes Bytes 16 * KIB, "Request body received before an origin connection is taken for it; what is longer streams from there on. 0: none.";
    SpoolBytes spool_bytes Bytes MIB, "A request body of unknown length, kept in memory until its length can be told to a FastCGI server; beyond it a file keeps it.";
    SpoolFileBytes spool_file_bytes Bytes 2 * GIB, "Files of all such bodies together, in the folder that the environment's `TMPDIR` names, or else in `/var/tmp`; a longer body gets 413, one that finds no room 503. 0: no files, and 413 beyond `spool_bytes`.";
    // Without any, nothing that blocks would ever be done.
    BlockingThreads blocking_threads Count 64, "Threads of one core for what blocks, such as reading files and testing stored responses against bans, counted at the start; beyond it such work queues.", least(1), most(10_000), at_start();
    ScriptLookups script_lookups Count 10_000, "Paths per origin and core whose script is remembered, each for a second; beyond it all are looked up anew.";
    OpenFiles open_files Count 1_000, "Paths per core of which is known what file they mean, files held open; beyond it those not asked for lately are closed. 0: every request looks anew.";
    FilesRecheck files_recheck Ms 1_000, "How long what a path means is trusted before the disk is asked again.";
    StderrBytes stderr_bytes Bytes 4 * KIB, "What a script writes to its error stream during one request and is logged; the rest is dropped.";
    ObjectBytes object_bytes Bytes 64 * MIB, "Largest body the memory cache stores; larger ones pass through a window.", least(KIB), most(1 << 40);
    DecodedBytes decoded_bytes Bytes GIB, "What one body may decode to where a client does not take its coding; beyond it the response is cut.";
    DecodedRatio decoded_ratio Count 1_100, "The same per byte of the coded body, on average and beyond the first 1MiB. No gzip reaches the default; brotli and zstd can.", least(2);
    // A window below what encoders use by default would cut nearly everything.
    DecodedWindow decoded_window Bytes 8 * MIB, "Window of a brotli or zstd body that is decoded, which is memory for each client; a body that needs a larger one is cut.", least(512 * KIB), most(16 * MIB);
    CodingTime coding_time Percent 20, "Share of one core's time for making further forms (gzip, brotli, zstd) of stored bodies, on a thread of low priority, of which ten seconds may be saved up; beyond it they are made later. 0: none are made.";
    FormBytes form_bytes Bytes 4 * MIB, "Largest body of which further forms in brotli and zstd are made, or with a dictionary; one in gzip is made of every body that came without a coding.";
    Dictionaries dictionaries Count 256, "Stored responses that are known as dictionaries (RFC 9842) by their hashes, and as many whose bodies are still coming; beyond it the one that became known first is forgotten, until it is asked for again. 0: none are used.";
    SlicesFrom slices_from Bytes 32 * MIB, "Length from which a body is stored in slices, fetched and evicted one by one, if its origin sends ranges and names its version. 0: never.";
    SliceBytes slice_bytes Bytes 4 * MIB, "Length of a slice, rounded down to 64KiB, and no longer than `object_bytes`.";
    SliceAhead slice_ahead Count 2, "Slices brought ahead of a client that reads on.";
    SliceFetches slice_fetches Count 64, "Slices that one core fetches at once; further ones wait.";
    RangelessTtl rangeless_ttl Ms 300_000, "After an origin has answered a request for a range with something else, how long it is not asked for ranges.";
    // Without any of it nothing could pass; with all of it nothing would stay stored.
    ClientMemory client_memory Percent 50, "Share of `memory` that may be held for clients: bodies on their way, requests that wait with their heads, uploads, and what connections keep for slow clients: requests sent ahead, half of a head, answers that are not taken, bytes of tunnels. Stored responses make room for it. One connection gets at most a sixteenth of it and less the more is in use, with smaller windows first; an eighth of it, at most 16MiB, is kept for connections that hold little, and one client gets at most half of that; beyond it 503, and the end of connections that take too little of what they asked for.", least(5), most(90);
    ConnectionMemory connection_memory Percent 75, "Share of that which client connections may take merely by being open: 4KiB each, 8KiB more over TLS and 12KiB more for HTTP/2. Where a new one finds no room, those of its core that have waited longest for a request are closed unless one has come, or else those of other cores; if all are busy for a second, the new one is closed.";
    EsiDepth esi_depth Count 5, "Levels of fragments within a page that is put together of others (ESI, SSI); what lies deeper is left out. Under VCL the parameter `max_esi_depth`.";
    EsiIncludes esi_includes Count 1000, "Fragments of a page in all, those of its fragments included; what comes after them is left out.";
    EsiParallel esi_parallel Count 64, "Fragments of a page that are asked for at the same time; others wait until one of them is answered.";
    EsiStillTime esi_still_time Ms 120_000, "A page that is put together and waits for its next piece, while its client would take it; then the page ends, and is not whole.";
    EsiBytes esi_bytes Bytes 64 * MIB, "Bytes of a page's fragments in all; what comes after them is left out, and a page that has begun to be sent ends its connection.";
    EsiNodes esi_nodes Count 10_000, "Instructions and texts of one page; what comes after them is sent as it is.";
    DiskReadTimeout disk_read_timeout Ms 500, "Reading from the disk cache before anything of a response has come; then the origin is asked instead.";
    ClusterQueue cluster_queue Count 10_000, "Invalidations that wait to be told to the other nodes while NATS is out of reach. Beyond it they give way to one message: that nothing stored before is to be trusted.", at_start();
    ClusterWait cluster_wait Ms 5_000, "The wait of a purge's answer for the cluster: until the stream has it, or all live nodes have applied it. Then it is 503, and says what is missing.", at_start();
    NeighbourQueue neighbour_queue Count 10_000, "Invalidations that wait to be told to one neighbour (`[[neighbour]]`); beyond it further ones are not told to it.";
    NeighbourRetry neighbour_retry Ms 600_000, "How long a neighbour is told again that does not take an invalidation; then it is not told.";
    NeighbourTimeout neighbour_timeout Ms 5_000, "One exchange with a neighbour, and the wait of a purge's answer for all of them (`Larder-Wait: all`).";
    ClusterLease cluster_lease Ms 30_000, "Silence of the node of the cluster that orders certificates, after which another goes on with that.", at_start();
    ClusterSecrets cluster_secrets Count 1_000, "Entries that nodes of the cluster share by `secret_file`: ticket keys, the account, a challenge, certificates; further ones are not taken.", at_start();
    ClusterSecretBytes cluster_secret_bytes Bytes 64 * KIB, "One of these; a larger one is not taken.", at_start();
    // NATS' own bound is 1 MiB, of all that is in a message.
    ClusterConfigurationBytes cluster_configuration_bytes Bytes 512 * KIB, "A configuration that nodes of the cluster share, with the VCL files that it names; a larger one is not rolled out, and not taken. NATS takes no message of more than 1MiB unless its `max_payload` says so.",
        least(KIB), most(1000 * KIB), at_start();
    SiblingTimeout sibling_timeout Ms 50, "Wait for siblings (`[[neighbour]] ask`): until one says by HTCP that it has what is asked for, and then until its response begins. Then the origin is asked.";
    PeerTimeout peer_timeout Ms 50, "Wait for another node of the cluster, which owns what is asked for: until its answer begins, or its word that it fetches it. Then the origin is asked.";
    // The store writes 4 MiB at a time, and gathers while it does.
    DiskQueueBytes disk_queue_bytes Bytes 64 * MIB, "What waits to be written to one volume of the disk cache; beyond it nothing more goes to disk. Responses that leave memory count in `memory` until they are written, bodies on their way to the disk do not.", least(16 * MIB), most(1 << 40), at_start();
    DiskIndexBytes disk_index_bytes Bytes 0, "Memory for knowing what is on disk, beside `memory`: some 52 bytes for each response there. Where it is full, what is worth least leaves the disk, and nothing goes there until that is done. 0: an eighth of the machine's memory or of the control group's limit, at least 64MiB.", own();
    DiskRetry disk_retry Ms 60_000, "From one try to use a volume of the disk cache again, which is out of use, full or slow, to the next.", at_start();
    DiskBodyShare disk_body_share Percent 25, "Share of the disk cache's volumes that one body which is too large for memory may take; a longer one is not stored. 0: none goes to the disk while it comes.";
    DiskReadShare disk_read_share Percent 50, "Share of a volume of the disk cache that may be kept from being reclaimed because clients are reading it, bodies that do not come in one read. Beyond it whoever asks for all of such a body is answered by the origin.";
    DiskBodyWait disk_body_wait Ms 5_000, "A body on its way to the disk cache of which the disk takes nothing more; then it passes to those who have asked for it.";
    // Less than a read's worth would stall every transfer.
    WindowBytes window_bytes Bytes 256 * KIB, "Bytes of a passing body held between origin and client.", least(16 * KIB), most(GIB);
    Variants variants Count 64, "Variants (Vary) of one key; beyond it the oldest is evicted.", least(1);
    Waiters waiters Count 100_000, "Requests waiting for one fetch; beyond it 503.";
    WaitTimeout wait_timeout Ms 5_000, "Waiting for another request's fetch to answer, where something stale may be served instead; then it is. Without that a request waits as long as the fetch takes.", least(0);
    HitForMissTtl hit_for_miss_ttl Ms 120_000, "After an uncacheable answer, how long requests for that key do not wait for each other.", least(0);
    TagBytes tag_bytes Bytes 512 * KIB, "Fields with surrogate keys of one response in all, not counted in header_bytes; beyond it the response is not stored, beyond twice as much 502.";
    Tags tags Count 20_000, "Surrogate keys of one response; beyond it the response is not stored.";
    Bans bans Count 1_000, "Bans kept for what may not have been tested against them; beyond it the oldest are completed before another is made.";
    VarnishCliBytes varnish_cli_bytes Bytes 4 * MIB, "One line on the Varnish CLI port, and one here-document, of a client that knows the secret, 4KiB of others; beyond it the connection is closed. With varnishd's flags it is `cli_limit` where that is more.";
    VarnishCliCertificates varnish_cli_certificates Count 1_000, "Certificates that `tls.cert.load` of the Varnish CLI has loaded, staged ones among them; beyond it more are refused.";
    VarnishCliCertificateBytes varnish_cli_certificate_bytes Bytes 256 * KIB, "One file that `tls.cert.load` or `tls.cert.reload` of the Varnish CLI reads; beyond it the file is refused.";
    VarnishCliConnections varnish_cli_connections Count 32, "Connections to the Varnish CLI port whose clients know the secret; beyond it new ones are closed. As many may have not shown it yet; beyond it the oldest of those is closed.";
    VarnishCliWrongAnswer varnish_cli_wrong_answer Ms 1_000, "From a wrong answer to the secret to the reply to it, one at a time for the whole port.";
    VarnishCliAuthTimeout varnish_cli_auth_timeout Ms 10_000, "From a connection to the Varnish CLI port to the proof that the client knows the secret; then it is closed.";
    VarnishCliIdleTimeout varnish_cli_idle_timeout Ms 300_000, "A connection to the Varnish CLI port without a command, or with a reply that is not taken; then it is closed.";
    LogHeads log_heads Bytes 16 * KIB, "Header fields kept with one transaction's record while a reader asks for them, at most 64 KiB; the rest is left out.";
    LogReaders log_readers Count 16, "Readers of the log that ask for header fields at once; beyond it the next is refused.";
    ErrorLogRepeats error_log_repeats Count 10, "Equal lines of the log in which the daemon says what happens to it (`error_log`) in a second, once it serves; further ones are left out, and a line tells how many. 0: no limit.";
    ErrorLogLines error_log_lines Count 100, "The same of lines of one kind, whatever they say: of those that origins write, say. 0: no limit.";
    TraceSpans trace_spans Count 2_000, "Spans that wait for the collector of traces, those of the last half second among them; further ones are dropped.";
    TraceTimeout trace_timeout Ms 5_000, "One delivery to the collector of traces; then it is tried again.";
    TraceRetry trace_retry Ms 60_000, "How long spans are kept that the collector of traces does not take yet: no connection, no answer, 429, 502, 503, 504; then they are dropped. 0: they are not kept.";
    OriginConnections origin_connections Count 1_000, "Connections to one origin server in all; beyond it requests queue.";
    OriginShare origin_share Percent 75, "Share of the connections to one origin server that one client (IPv4 address or IPv6 /64; on loopback one connection) gets when nobody else has any, and less the fewer are free; beyond it its requests queue, client by client in turn. 100: no limit.";
    OriginQueue origin_queue Count 1_000, "Requests waiting for an origin connection; beyond it 503.";
    OriginQueueTimeout origin_queue_timeout Ms 5_000, "Waiting for an origin connection; beyond it 503.", least(0);
    OriginIdle origin_idle Count 128, "Idle connections kept per origin server and core.";
    OriginIdleTimeout origin_idle_timeout Ms 55_000, "An idle origin connection; then it is closed.";
    ConnectTimeout connect_timeout Ms 2_000, "Connecting to an origin server; beyond it 504 or another server.";
    FirstByteTimeout first_byte_timeout Ms 60_000, "From the request's last byte to the origin to the response's head; beyond it 504.";
    BetweenBytesTimeout between_bytes_timeout Ms 60_000, "An origin response's body without a new byte, then the response is cut; or a request's body of which the origin takes no byte, then 504. A body that has begun to come from the disk cache has as long for its next bytes.";
    TotalTimeout total_timeout Ms 3_600_000, "One exchange with an origin in all, but for a body that passes through unstored; then the response is cut.";
    RetryBudget retry_budget Percent 20, "Retried requests to an origin, as a share of its requests; beyond it failures are final.";
    Retries retries Count 2, "Further tries of one idempotent request after the first.", most(10);
    Tunnels tunnels Count 10_000, "Connections that changed their protocol (WebSocket), in all; beyond it 503.";
    TunnelsPerIp tunnels_per_ip Count 128, "The same of one client, IPv4 address or IPv6 /64, loopback apart; beyond it 503. 0: no limit.";
    TunnelIdleTimeout tunnel_idle_timeout Ms 3_600_000, "The same without a byte either way; then it is closed.";
    TunnelEndTimeout tunnel_end_timeout Ms 30_000, "The same, one side having ended, without a byte from the other; then it is closed.";
    InterimResponses interim_responses Count 10, "1xx responses before a final one; beyond it 502.", most(100);
    AcmeTimeout acme_timeout Ms 30_000, "One exchange with a certificate authority; then the order fails.";
    AcmeOrderTimeout acme_order_timeout Ms 300_000, "One certificate order in all; then it fails.";
    AcmeRetryWait acme_retry_wait Ms 60_000, "From a failed certificate order to the next for the same name, about; twice as long after every further failure.";
    AcmeRetryWaitMax acme_retry_wait_max Ms 21_600_000, "The longest of these waits, unless the authority asks for a longer one.";
    AcmeAnswerBytes acme_answer_bytes Bytes MIB, "Body of one answer of a certificate authority; beyond it the order fails.";
    OcspTimeout ocsp_timeout Ms 15_000, "One exchange with a responder about a certificate's status; then handshakes show the last answer, until it ends.";
    OcspAnswerBytes ocsp_answer_bytes Bytes 64 * KIB, "Body of one answer of a responder; beyond it the same.";
    OcspRetryWait ocsp_retry_wait Ms 300_000, "From a failed exchange with a responder to the next about the same certificate, about.";
    AdminConnections admin_connections Count 64, "Connections to the admin socket; beyond it new ones are closed at once. As many to each of its addresses may have shown a token, and as many none yet; beyond it the oldest without one is closed.";
    AdminHeadBytes admin_head_bytes Bytes 16 * KIB, "Head of a request to the admin listener, to `[health]` or `[metrics]`, at least 8KiB; beyond it 431.";
    AdminBodyBytes admin_body_bytes Bytes MIB, "Body of a request to the admin listener; beyond it 413.";
    AdminTimeout admin_timeout Ms 10_000, "A connection to the admin listener, to `[health]` or `[metrics]` that waits for its handshake, for a request's head, for its body, or for a byte of an answer to be taken; then it is closed.";
    AdminWrongTokens admin_wrong_tokens Count 5, "Wrong tokens of one address in a second; beyond it 429 for each further wrong one until the second is over. A right one is always taken.";
    HealthConnections health_connections Count 64, "Connections to each address of `[health]`, of one request each; beyond it the oldest is closed.";
    MetricsConnections metrics_connections Count 16, "Connections to each address of `[metrics]` that have shown what is asked for there, and as many that have shown nothing yet; beyond it the oldest of these is closed.";
    H2Streams h2_streams Count 100, "Requests at once on one HTTP/2 connection, at most 1000; further ones are refused, and can be made again.";
    H2Continuations h2_continuations Count 8, "CONTINUATION frames of one HTTP/2 request; beyond it the connection ends.";
    H2Resets h2_resets Count 100, "Requests of one HTTP/2 connection in 10 s that the client takes back, or that cannot be answered because of what it sends; beyond it the connection ends.";
    H2ControlFrames h2_control_frames Count 1_000, "HTTP/2 frames of one connection in 10 s that carry nothing: SETTINGS, PING, priorities, empty DATA, windows opened by less than 1 KiB, unknown types; beyond it the connection ends.";
    H2StallTimeout h2_stall_timeout Ms 30_000, "A response on HTTP/2 held back by the client's windows without a new byte; then its stream ends.";
    H2Memory h2_memory Bytes 4 * MIB, "Bytes held for one HTTP/2 connection, both ways: bodies, and requests that wait. 32KiB of it for each of `h2_streams` are kept for requests, and it is never less than these and 512KiB. The more streams there are, the smaller their windows; requests beyond it are refused, and can be made again.";
    DashboardViewers dashboard_viewers Count 32, "Dashboards that are sent live figures at once; beyond it one more is answered 503.";
    VclSteps vcl_steps Count 100_000, "Statements and calls that a VCL may take for one request, and as many for each fetch; beyond it the request fails (500).";
    VclWorkspaceClient vcl_workspace_client Bytes 256 * KIB, "Strings that a VCL builds and that its VMODs make for one request, in all; beyond it the request fails (503). With varnishd's flags it is `workspace_client`.";
    VclWorkspaceBackend vcl_workspace_backend Bytes 256 * KIB, "The same for one fetch; beyond it the fetch fails. With varnishd's flags it is `workspace_backend`.";
    VclGlobals vcl_globals Count 10_000, "Variables that VCL keeps for all requests (`var.global_set`); beyond it a new one is not set.";
    VclGlobalBytes vcl_global_bytes Bytes 16 * MIB, "Their names and values in all; beyond it one is not set.";
    VclNames vcl_names Count 1_000, "Host names that VCL's `std.ip` has looked up and that are remembered; beyond it others are not looked up.";
    ThrottleBuckets throttle_buckets Count 200_000, "Token buckets of VCL's `vsthrottle`; beyond it those not used for the longest are forgotten.";
    DirectorBackends director_backends Count 10_000, "Backends of one director of a VCL program; beyond it adding one fails. A `dynamic` director forgets one that was never found, or else the one that was not asked for for longest.";
    DirectorNewHosts director_new_hosts Count 200, "Hosts that VCL's `dynamic` directors take on in one second, or look up again after a failure, half of them for one client (IPv4 address or IPv6 /64; on loopback one connection); beyond it they have no backend. Hosts that have been found are looked up again at this rate.";
    GeoipBytes geoip_bytes Bytes 512 << 20, "Bytes of a database of VCL's `geoip2`; a program with a larger one is not loaded.";
    ErrorPageBytes error_page_bytes Bytes 256 * KIB, "One file of `error_pages`, each of which is held in memory; a configuration with a longer one is not loaded.";
    PasswordChecks password_checks Count 4, "Passwords of one site's `basic_auth` that are checked at once, each by a thread for tens of milliseconds; further ones wait.";
    PasswordChecksClient password_checks_client Count 2, "Of these, those of one client (IPv4 address or IPv6 /64); beyond it 429.";
    PasswordQueue password_queue Count 1_024, "Requests that wait for that at one site; beyond it the one that has waited for longest is answered 503. Users and clients who were right in the last day come first, then the latest.";
    PasswordWait password_wait Ms 10_000, "A request that waits for that; then 503.";
    PasswordKeep password_keep Ms 300_000, "Time for which a password that was right is remembered. 0: each request has it checked.";
    GateMemory gate_memory Count 4_096, "Answers of `basic_auth` and `forward_auth` that each core remembers; beyond it those leave that nobody has used lately.";
    GateAnswerBytes gate_answer_bytes Bytes 256 * KIB, "Body of an answer of the server that `forward_auth` asks; beyond it 502.";
    UsersBytes users_bytes Bytes 4 << 20, "One file of users of `basic_auth`; a configuration with a longer one is not loaded.";
    RateWait rate_wait Ms 10_000, "Longest wait of a request that a site's `rate` lets in later (`queue`); whoever would have to wait longer is refused.";
    LimitedClients limited_clients Count 65_536, "Clients that one `rate` or `concurrent` of a site counts apart, at 16 or 8 bytes each. Beyond it a client takes the place of the one that has used least of its rate, and what that has used: nobody is let in more often for it.";
    Ranges ranges Count 32, "Ranges of one request; beyond it the whole representation is sent.", most(1000);
}

/// Limits beyond which nothing happens that could be counted, and why.
pub const UNCOUNTED: &[(Limit, &str)] = &[
    (Limit::BodyRateLeeway, "when it is over body_min_rate holds, which is counted"),
    (Limit::SendRateLeeway, "when it is over send_min_rate holds, which is counted"),
    (Limit::BlockingThreads, "what there is no thread for begins later"),
    (Limit::FilesRecheck, "how long something is believed"),
    (Limit::HitForMissTtl, "how long something is believed"),
    (Limit::EsiParallel, "what there is no place for begins later"),
    (Limit::FormBytes, "what is larger keeps the form that it is stored in"),
    (Limit::SlicesFrom, "where something else begins"),
    (Limit::SliceBytes, "how something is divided"),
    (Limit::SliceAhead, "how much is done before it is asked for"),
    (Limit::RangelessTtl, "how long something is believed"),
    (Limit::WindowBytes, "a full window is how a body passes at its reader's pace"),
    (Limit::AcmeRetryWait, "how long is waited before a try"),
    (Limit::AcmeRetryWaitMax, "how long is waited before a try"),
    (Limit::OcspRetryWait, "how long is waited before a try"),
    (
        Limit::ErrorPageBytes,
        "a configuration that reaches it is not loaded, and the error names it",
    ),
    (Limit::UsersBytes, "a configuration that reaches it is not loaded, and the error names it"),
    (Limit::PasswordKeep, "how long something is believed"),
    (Limit::GeoipBytes, "a program that reaches it is not loaded, and the error names it"),
];

impl Limit {
    /// Its name in settings, counters and messages.
    pub fn name(self) -> &'static str {
        TABLE.iter().find(|spec| spec.limit == self).map_or("", |spec| spec.name)
    }
}

impl Limits {
    /// The limit called `name`, if there is one.
    pub fn by_name(name: &str) -> Option<&'static LimitSpec> {
        TABLE.iter().find(|spec| spec.name == name)
    }
}

impl LimitSpec {
    /// Reads a setting written in this limit's unit.
    pub fn parse(&self, text: &str) -> Result<u64, units::Error> {
        match self.unit {
            Unit::Ms => units::parse_duration_ms(text),
            Unit::Bytes | Unit::BytesPerSecond => units::parse_size(text),
            Unit::Count | Unit::Percent => text.trim().parse().map_err(|_| units::Error::Number),
        }
    }

    /// `value` as it would be written in a setting.
    pub fn show(&self, value: u64) -> String {
        match self.unit {
            Unit::Ms => DurationMs(value).to_string(),
            Unit::Bytes | Unit::BytesPerSecond => Bytes(value).to_string(),
            Unit::Count | Unit::Percent => value.to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_limit_reads_what_it_shows() {
        let mut limits = Limits::default();
        for spec in TABLE {
            assert_eq!(spec.parse(&spec.show(spec.default)), Ok(spec.default), "{}", spec.name);
            assert_eq!(limits.value(spec.limit), spec.default);
            *limits.slot(spec.limit) = 7;
            assert_eq!(limits.value(spec.limit), 7);
            assert!(spec.about.ends_with('.'), "{}", spec.name);
        }
    }

    #[test]
    fn every_default_is_in_range() {
        for spec in TABLE {
            assert!((spec.least..=spec.most).contains(&spec.default), "{}", spec.name);
        }
    }
}
