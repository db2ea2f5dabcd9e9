//! The table of limits: name, default, unit and meaning. The settings (`[limits]` in larder.toml),
//! the counters (`limit_hits{limit="..."}`) and the reference page are made from it. Everything
//! that can grow must have a row here.

use crate::units::{self, Bytes, DurationMs};

/// The unit of a limit.
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
    /// Percent of what the description names.
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
    /// The least valid value, in its unit.
    pub least: u64,
    /// The largest valid value, in its unit.
    pub most: u64,
    /// True for a setting of a node rather than of a cluster: it concerns the machine, or needs a
    /// restart.
    pub is_own: bool,
    /// True if a reload does not change it.
    pub takes_restart: bool,
    /// A description of the limit, and of the effect when it is reached.
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

        /// The table of all limits.
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
    /// The least valid value of a row without `least`. A row with `least(0)` permits 0: no wait, or
    /// no limit, as its description says.
    const fn least(self) -> u64 {
        match self {
            Self::Ms => 1,
            _ => 0,
        }
    }

    /// The largest valid value of a row without `most`.
    const fn most(self) -> u64 {
        match self {
            Self::Ms => YEAR_MS,
            Self::Bytes | Self::BytesPerSecond => 1 << 50,
            Self::Count => COUNT_MAX,
            Self::Percent => 100,
        }
    }
}

/// The modifiers of a row.
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
    // A header block has offsets of 32 bits and name lengths of 16 bits: these values leave room.
    HeaderBytes header_bytes Bytes 32 * KIB, "Maximum size of a request head, and of a response head if `response_header_bytes` is 0. Larger heads result in 431 (request) or 502 (response).", least(KIB), most(16 * MIB);
    HeaderFieldBytes header_field_bytes Bytes 8 * KIB, "Maximum size of one header field, name and value, of a request. It applies to response fields, too, if `response_field_bytes` is 0. Larger fields result in 431 (request) or 502 (response).", least(256), most(63 * KIB);
    ResponseHeaderBytes response_header_bytes Bytes 0, "Maximum size of the head of an origin's response. Larger heads result in 502. 0: `header_bytes` applies.", most(16 * MIB);
    ResponseFieldBytes response_field_bytes Bytes 0, "Maximum size of one header field, name and value, of an origin's response. Larger fields result in 502. 0: `header_field_bytes` applies.", most(63 * KIB);
    HeaderCount header_count Count 100, "Maximum number of header fields in one head. More fields result in 431 (request) or 502 (response).", least(8), most(10_000);
    TargetBytes target_bytes Bytes 8 * KIB, "Maximum size of a request target. Longer targets get 414.", least(128), most(MIB);
    TrailerBytes trailer_bytes Bytes 8 * KIB, "Maximum size of the trailer section of a chunked body. Larger sections result in 400 (request) or 502 (response).", most(MIB);
    HeaderTimeout header_timeout Ms 10_000, "Maximum time from the first to the last byte of a request head. Slower requests get 408 and the connection is closed. The same time applies to a PROXY header.";
    ProxyHeaderBytes proxy_header_bytes Bytes 4 * KIB, "Maximum size of a PROXY protocol header (version 2), with everything in it. If a header is larger, the connection is closed.";
    HandshakeTimeout handshake_timeout Ms 10_000, "Maximum time from the start of a TLS connection to the end of its handshake. After that, the connection is closed.";
    Handshakes handshakes Count 1_000, "Maximum number of simultaneous TLS handshakes on one core. If there are more, the oldest is closed.";
    IdleTimeout idle_timeout Ms 30_000, "Time after which a keep-alive client connection without a request is closed.";
    DrainTime drain_time Ms 30_000, "Maximum time that running requests have to finish when the daemon stops. After that, they are cut off.", least(0);
    DrainWait drain_wait Ms 1_000, "Time that a new connection has to send its first byte when the daemon stops, counted from the connection's start. After that, the connection is closed.";
    BodyTimeout body_timeout Ms 30_000, "Maximum time without a new byte of a request body. After that, the client gets 408 and the connection is closed.";
    BodyMinRate body_min_rate BytesPerSecond KIB, "Minimum transfer rate of a request body after `body_rate_leeway`. Slower requests get 408 and the connection is closed. Over HTTP/2, only the stream ends.";
    BodyRateLeeway body_rate_leeway Ms 10_000, "Time for which a request body may be slower than `body_min_rate`.", least(0);
    SendTimeout send_timeout Ms 30_000, "Maximum time in which a client takes no byte of a response. After that, the connection is closed.";
    ResponseTime response_time Ms 0, "Maximum time for sending one response, from its first to its last byte. After that, the connection is closed; over HTTP/2, the stream ends. 0: no limit.", least(0);
    SendMinRate send_min_rate BytesPerSecond KIB, "Minimum rate at which a client must take a response after `send_rate_leeway`. Connections of slower clients are closed. Over HTTP/2, the stream whose window is too slow ends.";
    SendRateLeeway send_rate_leeway Ms 60_000, "Time for which a client may take a response more slowly than `send_min_rate`.", least(0);
    LingerTime linger_time Ms 30_000, "Maximum total time for reading and discarding what a client still sends after the last response of a connection. After that, the connection is closed.";
    HalfCloseTimeout half_close_timeout Ms 5_000, "Time to wait for the response if the client closed its sending side within a second of its request. After that, the client counts as gone.";
    LingerTimeout linger_timeout Ms 5_000, "Maximum time without a new byte while Larder discards what a client still sends (see `linger_time`). After that, the connection is closed. Over HTTP/2, also the time that a client has to read a response sent before its request ended. After that, Larder asks the client to end the request.", least(0);
    UpgradeTimeout upgrade_timeout Ms 10_000, "Maximum time that a new process has to get ready in an upgrade, and then again to begin to serve. After that, it is ended, and the old process goes on.";
    UpgradeQueue upgrade_queue Count 10_000, "Maximum number of purges that the other process of an upgrade has not confirmed. Further purges are refused.", least(1);
    DrainBytes drain_bytes Bytes 64 * KIB, "Maximum size of the unread rest of a request body that Larder discards to keep the connection. If more is left, the connection closes after the response. After the end of an HTTP/2 connection, Larder discards at most `drain_bytes` plus `window_bytes`.";
    KeepaliveRequests keepalive_requests Count 10_000, "Maximum number of requests on one client connection. The response to the last one has `Connection: close`.", least(1);
    ConnectionLifetime connection_lifetime Ms 3_600_000, "Age after which a client connection closes with its next response.";
    Connections connections Count 0, "Maximum number of client connections. Further connections are closed at once. 0: four fifths of the process's file descriptors, not counting `descriptors_reserve`.";
    DescriptorsReserve descriptors_reserve Count 64, "File descriptors reserved for operators (the admin socket and Varnish's CLI). Clients, origins and files cannot use them.", own();
    ConnectionsPerIp connections_per_ip Count 256, "Maximum number of client connections per IPv4 address or IPv6 /64, except loopback. Further connections are closed at once. 0: no limit.";
    RequestBodyBytes request_body_bytes Bytes GIB, "Maximum size of a request body. Larger bodies get 413.";
    BodyBufferBytes body_buffer_bytes Bytes 16 * KIB, "Part of a request body that Larder receives before it takes an origin connection. The rest of a longer body is streamed. 0: nothing is buffered.";
    SpoolBytes spool_bytes Bytes MIB, "Maximum memory for a request body of unknown length that goes to a FastCGI server, which must know the length. Longer bodies go to a file (see `spool_file_bytes`).";
    SpoolFileBytes spool_file_bytes Bytes 2 * GIB, "Maximum total size of the files for request bodies beyond `spool_bytes`. They are in the directory that the environment variable `TMPDIR` names, otherwise in `/var/tmp`. A body longer than the limit gets 413. A body for which no room is left gets 503. 0: no files are written, and bodies beyond `spool_bytes` get 413.";
    // With none, no blocking work would ever run.
    BlockingThreads blocking_threads Count 64, "Number of threads per core for blocking work, such as reading files and testing stored responses against bans. Further work queues. The value is read at the start.", least(1), most(10_000), at_start();
    ScriptLookups script_lookups Count 10_000, "Maximum number of paths per origin and core for which Larder remembers the script. Each is remembered for a second. Beyond the limit, all are looked up again.";
    OpenFiles open_files Count 1_000, "Maximum number of paths per core for which Larder remembers the file and holds it open. Beyond the limit, the least recently used are closed. 0: every request looks up its file.";
    FilesRecheck files_recheck Ms 1_000, "Time for which Larder trusts a remembered path before it checks the disk again.";
    StderrBytes stderr_bytes Bytes 4 * KIB, "Maximum size of a script's error output that is logged per request. The rest is dropped.";
    ObjectBytes object_bytes Bytes 64 * MIB, "Maximum size of a body in the memory cache. Larger bodies pass through a window (`window_bytes`).", least(KIB), most(1 << 40);
    DecodedBytes decoded_bytes Bytes GIB, "Maximum decoded size of a body that Larder decodes because the client does not accept its coding. Beyond the limit, the response is cut off.";
    DecodedRatio decoded_ratio Count 1_100, "Maximum ratio of decoded to coded size of a body, on average, after the first 1MiB. Beyond the limit, the response is cut off. gzip cannot reach the default; brotli and zstd can.", least(2);
    // A window smaller than the encoders' default would cut nearly every body.
    DecodedWindow decoded_window Bytes 8 * MIB, "Maximum window of a brotli or zstd body that Larder decodes. The window takes memory for each client. A body with a larger window is cut off.", least(512 * KIB), most(16 * MIB);
    CodingTime coding_time Percent 20, "Share of one core's time for compressing stored bodies (gzip, brotli, zstd). The work runs on a thread of low priority. Up to ten seconds of unused time are saved up. Beyond the limit, bodies are compressed later. 0: stored bodies are not compressed.";
    FormBytes form_bytes Bytes 4 * MIB, "Maximum size of a body that Larder compresses with brotli, zstd or a dictionary. Compression with gzip has no such limit: it is used for every body that arrived without a coding.";
    Dictionaries dictionaries Count 256, "Maximum number of stored responses known as dictionaries (RFC 9842) by their hashes. As many more may still be arriving. Beyond the limit, the oldest is forgotten until a request needs it again. 0: dictionaries are not used.";
    SlicesFrom slices_from Bytes 32 * MIB, "Minimum length of a body that is stored in slices, which are fetched and evicted one by one. The origin must support range requests and send a validator. 0: never.";
    SliceBytes slice_bytes Bytes 4 * MIB, "Length of a slice, rounded down to a multiple of 64KiB, and at most `object_bytes`.";
    SliceAhead slice_ahead Count 2, "Number of slices that Larder fetches ahead of a client that reads sequentially.";
    SliceFetches slice_fetches Count 64, "Maximum number of slices that one core fetches at the same time. Further fetches wait.";
    RangelessTtl rangeless_ttl Ms 300_000, "Time for which Larder sends no range requests after an origin answered one with something else.";
    // With 0 no client could be served; with 100 nothing would stay stored.
    ClientMemory client_memory Percent 50, "Share of `memory` that client connections may hold. It covers bodies in transit, waiting requests with their heads, and uploads. It also covers buffers for slow clients: pipelined requests, incomplete heads, unread responses and tunnel data. Stored responses are evicted to make room. One connection gets at most a sixteenth. As use grows, connections get less, and their windows shrink first. An eighth (at most 16MiB) is reserved for connections that hold little; one client gets at most half of the reserve. Beyond the limit, requests get 503, and connections that read their responses too slowly are closed.", least(5), most(90);
    ConnectionMemory connection_memory Percent 75, "Share of `client_memory` that open client connections may take. A connection counts as 4KiB, plus 8KiB with TLS and 12KiB with HTTP/2. If a new connection finds no room, Larder closes idle connections that have waited longest for a request. It starts with those of the same core. If all are busy for a second, the new connection is closed.";
    EsiDepth esi_depth Count 5, "Maximum depth of nested fragments in a page assembled with ESI or SSI. Deeper fragments are left out. With VCL, the parameter `max_esi_depth` applies instead.";
    EsiIncludes esi_includes Count 1000, "Maximum number of fragments in a page, nested fragments included. Further fragments are left out.";
    EsiParallel esi_parallel Count 64, "Maximum number of fragments of a page that are fetched at the same time. Further fragments wait.";
    EsiStillTime esi_still_time Ms 120_000, "Maximum time that an assembled page waits for its next fragment while the client is ready to read. After that, the page ends incomplete.";
    EsiBytes esi_bytes Bytes 64 * MIB, "Maximum total size of a page's fragments. Further fragments are left out. If sending has begun, the connection is closed.";
    EsiNodes esi_nodes Count 10_000, "Maximum number of instructions and text parts in a page. The rest of the page is sent unprocessed.";
    DiskReadTimeout disk_read_timeout Ms 500, "Maximum time for a read from the disk cache before the first byte of a response. After that, Larder fetches from the origin.";
    ClusterQueue cluster_queue Count 10_000, "Maximum number of invalidations that wait for the other nodes while NATS is unreachable. Beyond the limit, one message replaces them all: it invalidates everything that was stored before.", at_start();
    ClusterWait cluster_wait Ms 5_000, "Maximum time that the answer to a purge waits for the cluster: for the stream, or for all live nodes. After that, the answer is 503 and names what is missing.", at_start();
    NeighbourQueue neighbour_queue Count 10_000, "Maximum number of invalidations that wait to be sent to one neighbour (`[[neighbour]]`). Further invalidations are not sent to that neighbour.";
    NeighbourRetry neighbour_retry Ms 600_000, "Time for which Larder retries an invalidation that a neighbour does not accept. After that, Larder gives up.";
    NeighbourTimeout neighbour_timeout Ms 5_000, "Maximum time for one exchange with a neighbour. The answer to a purge with `Larder-Wait: all` waits for all neighbours for at most this time, too.";
    ClusterLease cluster_lease Ms 30_000, "Time without a sign of life from the node that orders certificates, after which another node takes over.", at_start();
    ClusterSecrets cluster_secrets Count 1_000, "Maximum number of entries that nodes share with `secret_file`: ticket keys, the ACME account, challenges and certificates. Further entries are rejected.", at_start();
    ClusterSecretBytes cluster_secret_bytes Bytes 64 * KIB, "Maximum size of one shared entry (see `cluster_secrets`). Larger entries are rejected.", at_start();
    // The limit of NATS is 1 MiB for a whole message.
    ClusterConfigurationBytes cluster_configuration_bytes Bytes 512 * KIB, "Maximum size of a configuration that nodes share, including its VCL files. Larger configurations are neither rolled out nor accepted. NATS rejects messages over 1MiB unless its `max_payload` is higher.",
        least(KIB), most(1000 * KIB), at_start();
    SiblingTimeout sibling_timeout Ms 50, "Maximum time to wait for a sibling (`[[neighbour]] ask`) to confirm a hit by HTCP, and again for its response to begin. After that, Larder asks the origin.";
    PeerTimeout peer_timeout Ms 50, "Maximum time to wait for the node that owns a page: until its response begins, or it reports that it is fetching. After that, Larder asks the origin.";
    // The store writes 4 MiB at a time, and queues more meanwhile.
    DiskQueueBytes disk_queue_bytes Bytes 64 * MIB, "Maximum amount of data that waits to be written to one volume of the disk cache. Beyond the limit, nothing more is stored on disk. Queued responses that were evicted from memory count towards `memory`; bodies that go directly to disk do not.", least(16 * MIB), most(1 << 40), at_start();
    DiskIndexBytes disk_index_bytes Bytes 0, "Memory for the index of the disk cache, in addition to `memory`: about 52 bytes per response. If the index is full, the least valuable responses are removed from disk. Until that is done, nothing is stored there. 0: an eighth of the memory of the machine or control group, at least 64MiB.", own();
    DiskRetry disk_retry Ms 60_000, "Time between two attempts to use a disk cache volume that is out of service, full or slow.", at_start();
    DiskBodyShare disk_body_share Percent 25, "Share of the disk cache's volumes that one body may take if it is too large for memory. Longer bodies are not stored. 0: no body goes directly to disk.";
    DiskReadShare disk_read_share Percent 50, "Share of a disk cache volume that clients may keep from being reclaimed by reading it. Only bodies that take more than one read count. Beyond the limit, requests for a whole such body go to the origin.";
    DiskBodyWait disk_body_wait Ms 5_000, "Maximum time that a body on its way to the disk cache waits for the disk. After that, it is no longer stored, and is only passed to the clients that requested it.";
    // Less than one read would stall every transfer.
    WindowBytes window_bytes Bytes 256 * KIB, "Bytes held between origin and client of a body that is not stored.", least(16 * KIB), most(GIB);
    Variants variants Count 64, "Maximum number of variants (`Vary`) of one key. Beyond the limit, the oldest is evicted.", least(1);
    Waiters waiters Count 100_000, "Maximum number of requests that wait for one fetch. Further requests get 503.";
    WaitTimeout wait_timeout Ms 5_000, "Maximum time to wait for another request's fetch if a stale object may be served. After that, the stale object is served. Without a stale object, a request waits until the fetch ends.", least(0);
    HitForMissTtl hit_for_miss_ttl Ms 120_000, "Time after an uncacheable response in which requests for its key do not wait for each other.", least(0);
    TagBytes tag_bytes Bytes 512 * KIB, "Maximum size of a response's fields with surrogate keys, not counted in `header_bytes`. Beyond the limit, the response is not stored. Beyond twice the limit, the client gets 502.";
    Tags tags Count 20_000, "Maximum number of surrogate keys of a response. A response with more is not stored.";
    Bans bans Count 1_000, "Maximum number of bans kept for objects not yet tested against them. Beyond the limit, Larder completes the oldest before it adds another.";
    VarnishCliBytes varnish_cli_bytes Bytes 4 * MIB, "Maximum size of one line, and of one here-document, on the Varnish CLI port. Clients that have not proved that they know the secret get 4KiB. Beyond the limit, the connection is closed. With varnishd's flags, `cli_limit` applies if it is higher.";
    VarnishCliCertificates varnish_cli_certificates Count 1_000, "Maximum number of certificates loaded with `tls.cert.load` of the Varnish CLI, including staged ones. Further certificates are refused.";
    VarnishCliCertificateBytes varnish_cli_certificate_bytes Bytes 256 * KIB, "Maximum size of a file that `tls.cert.load` or `tls.cert.reload` of the Varnish CLI reads. Larger files are refused.";
    VarnishCliConnections varnish_cli_connections Count 32, "Maximum number of authenticated connections to the Varnish CLI port. Further ones are closed at once. As many unauthenticated connections may be open; beyond that, the oldest is closed.";
    VarnishCliWrongAnswer varnish_cli_wrong_answer Ms 1_000, "Delay before the reply to a wrong authentication on the Varnish CLI port. The whole port sends one such reply at a time.";
    VarnishCliAuthTimeout varnish_cli_auth_timeout Ms 10_000, "Time that a client of the Varnish CLI port has to authenticate. After that, the connection is closed.";
    VarnishCliIdleTimeout varnish_cli_idle_timeout Ms 300_000, "Time after which a Varnish CLI connection is closed if it sends no command or does not read a reply.";
    LogHeads log_heads Bytes 16 * KIB, "Maximum size of the header fields kept with a transaction's record while a reader requests them. At most 64 KiB. Further fields are left out.";
    LogEvidence log_evidence Bytes 2 * KIB, "Maximum size of the fields kept with the record of a request that asked an origin (see `[log_ring] evidence`). Further fields are left out.", most(3 * KIB);
    FingerprintBytes fingerprint_bytes Bytes 256 * KIB, "Maximum size of an origin's response body that gets a fingerprint (see `[log_ring] fingerprints`). Larger ones get none.";
    AdviceVisits advice_visits Count 20_000, "Maximum number of requests by which the dashboard makes advice, the last ones of the log ring. Each takes some 2KiB while it is made.", least(1), most(1_000_000);
    LogReaders log_readers Count 16, "Maximum number of log readers that request header fields at the same time. Further readers are refused.";
    ErrorLogRepeats error_log_repeats Count 10, "Maximum number of identical lines per second in the daemon's own log (`error_log`), once it serves. Further lines are left out, and one line reports their number. 0: no limit.";
    ErrorLogLines error_log_lines Count 100, "Maximum number of lines of one kind per second in `error_log`, whatever their text, for example lines written by origins. Further lines are left out and counted. 0: no limit.";
    TraceSpans trace_spans Count 2_000, "Maximum number of spans that wait for the trace collector, including those of the last half second. Further spans are dropped.";
    TraceTimeout trace_timeout Ms 5_000, "Maximum time for one delivery to the trace collector. After that, the delivery is retried.";
    TraceRetry trace_retry Ms 60_000, "Time for which spans are kept if the trace collector cannot be reached, does not answer, or answers 429, 502, 503 or 504. After that, they are dropped. 0: they are dropped at once.";
    OriginConnections origin_connections Count 1_000, "Maximum number of connections to one origin server. Further requests queue.";
    OriginShare origin_share Percent 75, "Share of the connections to an origin server that one client may use if no other client uses any. A client is an IPv4 address, an IPv6 /64 or, on loopback, a connection. The share shrinks as fewer connections are free. Beyond it, the client's requests queue, and clients take turns. 100: no limit.";
    OriginQueue origin_queue Count 1_000, "Maximum number of requests that wait for an origin connection. Further requests get 503.";
    OriginQueueTimeout origin_queue_timeout Ms 5_000, "Maximum time that a request waits for an origin connection. After that, it gets 503.", least(0);
    OriginIdle origin_idle Count 128, "Maximum number of idle connections kept per origin server and core.";
    OriginIdleTimeout origin_idle_timeout Ms 55_000, "Time after which an idle origin connection is closed.";
    ConnectTimeout connect_timeout Ms 2_000, "Maximum time for connecting to an origin server. After that, Larder tries another server or answers 504.";
    FirstByteTimeout first_byte_timeout Ms 60_000, "Maximum time from the last byte of a request to the head of the origin's response. After that, the client gets 504.";
    BetweenBytesTimeout between_bytes_timeout Ms 60_000, "Maximum time without progress of a body exchanged with an origin. If a response body stalls, the response is cut off. If the origin does not read a request body, the client gets 504. The same time applies to a body from the disk cache once it has begun.";
    TotalTimeout total_timeout Ms 3_600_000, "Maximum time for one exchange with an origin. After that, the response is cut off. Bodies that are not stored are exempt.";
    RetryBudget retry_budget Percent 20, "Maximum share of an origin's requests that may be retries. Beyond it, failed requests are not retried.";
    Retries retries Count 2, "Maximum number of retries of an idempotent request.", most(10);
    Mirrors mirrors Count 100, "Maximum number of copies of requests under way on one core (see `mirror`). Beyond it, requests are not copied.";
    Verifications verifications Count 4, "Maximum number of hits that one core compares with the origin at the same time (see `verify`). Further hits are not compared.";
    VerifyBytes verify_bytes Bytes 4 * MIB, "Maximum size of a body that is compared with the origin (see `verify`). Larger ones are not compared.";
    VerifyCookies verify_cookies Count 32, "Maximum number of cookies of a request whose hit is compared with the origin (see `verify`). Hits of requests with more are not compared.";
    VerifyTimeout verify_timeout Ms 30_000, "Maximum time for one comparison with the origin (see `verify`). After that, nothing is said about the hit.";
    VerifyHold verify_hold Ms 3_600_000, "Time for which Larder acts on a page that `verify` saw differ by visitor: requests with the cookie that makes the difference bypass the cache, or the page is not stored.";
    VerifyFindings verify_findings Count 100, "Maximum number of findings of `verify` that are kept for each site. Beyond it, the oldest is dropped.";
    WebhookQueue webhook_queue Count 100, "Maximum number of findings that wait to be sent to the receiver of `[webhook]`. Further ones are not sent.";
    WebhookTimeout webhook_timeout Ms 10_000, "Maximum time for sending one finding to the receiver of `[webhook]`. After that, it is tried again.", least(100);
    WebhookTries webhook_tries Count 4, "Number of times that a finding is sent to the receiver of `[webhook]` until it takes the finding. The waits between are 1s, 2s, 4s and so on.", least(1), most(10);
    Tunnels tunnels Count 10_000, "Maximum number of connections that changed their protocol (WebSocket). Further ones get 503.";
    TunnelsPerIp tunnels_per_ip Count 128, "Maximum number of tunnels (see `tunnels`) per IPv4 address or IPv6 /64, except loopback. Further ones get 503. 0: no limit.";
    TunnelIdleTimeout tunnel_idle_timeout Ms 3_600_000, "Time after which a tunnel without traffic in either direction is closed.";
    TunnelEndTimeout tunnel_end_timeout Ms 30_000, "Time after which a tunnel is closed if one side has ended and the other sends nothing.";
    InterimResponses interim_responses Count 10, "Maximum number of 1xx responses before the final response. More result in 502.", most(100);
    AcmeTimeout acme_timeout Ms 30_000, "Maximum time for one exchange with a certificate authority. After that, the order fails.";
    AcmeOrderTimeout acme_order_timeout Ms 300_000, "Maximum time for one certificate order. After that, the order fails.";
    AcmeRetryWait acme_retry_wait Ms 60_000, "Approximate time from a failed certificate order to the next for the same name. It doubles with every further failure, up to `acme_retry_wait_max`.";
    AcmeRetryWaitMax acme_retry_wait_max Ms 21_600_000, "Maximum time between two certificate orders after failures, unless the authority requests a longer one. See `acme_retry_wait`.";
    AcmeAnswerBytes acme_answer_bytes Bytes MIB, "Maximum body size of a certificate authority's response. If it is larger, the order fails.";
    OcspTimeout ocsp_timeout Ms 15_000, "Maximum time for one exchange with an OCSP responder. After that, handshakes use the last OCSP response until it expires.";
    OcspAnswerBytes ocsp_answer_bytes Bytes 64 * KIB, "Maximum body size of an OCSP response. If it is larger, handshakes use the last OCSP response until it expires.";
    OcspRetryWait ocsp_retry_wait Ms 300_000, "Approximate time from a failed exchange with an OCSP responder to the next for the same certificate.";
    AdminConnections admin_connections Count 64, "Maximum number of connections to the admin socket. Further ones are closed at once. Each admin address accepts as many connections with a token, and as many without. Beyond that, the oldest without a token is closed.";
    AdminHeadBytes admin_head_bytes Bytes 16 * KIB, "Maximum size of a request head on the admin listener, `[health]` and `[metrics]`, at least 8KiB. Larger heads get 431.";
    AdminBodyBytes admin_body_bytes Bytes MIB, "Maximum size of a request body on the admin listener. Larger bodies get 413.";
    AdminTimeout admin_timeout Ms 10_000, "Maximum time that a connection to the admin listener, `[health]` or `[metrics]` may take for each step. Steps are the handshake, a request's head, its body, and reading a byte of the response. After that, the connection is closed.";
    AdminWrongTokens admin_wrong_tokens Count 5, "Maximum number of wrong tokens per address and second. Further wrong ones get 429 until the second is over. A valid token is always accepted.";
    HealthConnections health_connections Count 64, "Maximum number of connections to each address of `[health]`. Each serves one request. Beyond the limit, the oldest is closed.";
    MetricsConnections metrics_connections Count 16, "Maximum number of authenticated connections to each address of `[metrics]`. As many unauthenticated connections may be open. Beyond the limit, the oldest unauthenticated one is closed.";
    H2Streams h2_streams Count 100, "Maximum number of simultaneous requests on one HTTP/2 connection, at most 1000. Further requests are refused, and clients can retry them.";
    H2Continuations h2_continuations Count 8, "Maximum number of CONTINUATION frames of one HTTP/2 request. Beyond the limit, the connection ends.";
    H2Resets h2_resets Count 100, "Maximum number of requests on one HTTP/2 connection in 10 s that the client cancels or makes unanswerable. Beyond the limit, the connection ends.";
    H2ControlFrames h2_control_frames Count 1_000, "Maximum number of HTTP/2 frames without payload on one connection in 10 s. These are SETTINGS, PING, priorities, empty DATA, window updates below 1 KiB, and unknown types. Each request, and each frame of a response body, permits 3 more. Beyond the limit, the connection ends.";
    H2StallTimeout h2_stall_timeout Ms 30_000, "Maximum time for which a client's HTTP/2 windows may hold back a response without a new byte. After that, the stream ends.";
    H2Memory h2_memory Bytes 4 * MIB, "Maximum memory for one HTTP/2 connection, in both directions: bodies and waiting requests. 32KiB for each of `h2_streams` are reserved for requests. The effective value is at least that reserve plus 512KiB. The more streams there are, the smaller their windows. Requests beyond the limit are refused, and clients can retry them.";
    OriginH2Streams origin_h2_streams Count 100, "Maximum number of simultaneous requests on one HTTP/2 connection to an origin server, at most 1000, and at most what the server permits. Further requests use further connections.", least(1), most(1000);
    OriginH2Window origin_h2_window Bytes 256 * KIB, "Part of a response body that an origin may send over HTTP/2 before Larder has passed on any of it. Larder may hold that much for each request.", least(64 * KIB), most(256 * MIB);
    OriginH2ControlFrames origin_h2_control_frames Count 10_000, "Maximum number of HTTP/2 frames in 10 s by which an origin moves no content. These are SETTINGS, PING, CONTINUATION, 1xx responses, empty DATA, unknown types, and frames of requests that have ended. Beyond the limit, the connection ends.";
    OriginH2Silence origin_h2_silence Ms 10_000, "Time without a byte from an origin server's HTTP/2 connection, while requests wait on it, after which Larder asks for a sign of life (PING). Without one in the same time again, the connection ends, and its requests fail.", least(10);
    DashboardViewers dashboard_viewers Count 32, "Maximum number of dashboards that receive live figures at the same time. Further ones get 503.";
    VclSteps vcl_steps Count 100_000, "Maximum number of VCL statements and calls for one request, and again for each fetch. Beyond the limit, the request fails (500).";
    VclWorkspaceClient vcl_workspace_client Bytes 256 * KIB, "Maximum total size of the strings that VCL and its VMODs create for one request. Beyond the limit, the request fails (503). With varnishd's flags, `workspace_client` sets it.";
    VclWorkspaceBackend vcl_workspace_backend Bytes 256 * KIB, "Maximum total size of the strings that VCL and its VMODs create for one fetch. Beyond the limit, the fetch fails. With varnishd's flags, `workspace_backend` sets it.";
    VclGlobals vcl_globals Count 10_000, "Maximum number of global VCL variables (`var.global_set`). Further variables are not set.";
    VclGlobalBytes vcl_global_bytes Bytes 16 * MIB, "Maximum total size of the names and values of global VCL variables. A variable beyond the limit is not set.";
    VclNames vcl_names Count 1_000, "Maximum number of host names that VCL's `std.ip` looks up and remembers. Further names are not looked up.";
    ThrottleBuckets throttle_buckets Count 200_000, "Maximum number of token buckets of VCL's `vsthrottle`. Beyond the limit, the least recently used are forgotten.";
    DirectorBackends director_backends Count 10_000, "Maximum number of backends of one VCL director. Beyond the limit, adding a backend fails. A `dynamic` director instead forgets a backend that was never found, otherwise the least recently used.";
    DirectorNewHosts director_new_hosts Count 200, "Maximum number of hosts that VCL's `dynamic` directors look up per second, for the first time or again after a failure. One client may use half of it. A client is an IPv4 address, an IPv6 /64 or, on loopback, a connection. Beyond the limit, hosts have no backend. Known hosts are looked up again at the same rate.";
    GeoipBytes geoip_bytes Bytes 512 << 20, "Maximum size of the database of `geoip`, and of one of VCL's `geoip2`. A configuration or program with a larger one is not loaded.";
    ErrorPageBytes error_page_bytes Bytes 256 * KIB, "Maximum size of one file of `error_pages`. Each file is held in memory. A configuration with a larger file is not loaded.";
    PasswordChecks password_checks Count 4, "Maximum number of passwords of one site's `basic_auth` that are checked at the same time. Each check takes a thread for tens of milliseconds. Further checks wait.";
    PasswordChecksClient password_checks_client Count 2, "Maximum number of simultaneous password checks of a site for one client (IPv4 address or IPv6 /64). Further requests get 429. See `password_checks`.";
    PasswordQueue password_queue Count 1_024, "Maximum number of requests of a site that wait for a password check. Beyond the limit, the request that has waited longest gets 503. Users and clients with a correct password in the last day come first, then the newest requests.";
    PasswordWait password_wait Ms 10_000, "Maximum time that a request waits for a password check. After that, it gets 503.";
    PasswordKeep password_keep Ms 300_000, "Time for which Larder remembers that a password was correct. 0: every request has its password checked.";
    GateMemory gate_memory Count 4_096, "Maximum number of results of `basic_auth` and `forward_auth` that each core remembers. Beyond the limit, the least recently used are forgotten.";
    GateAnswerBytes gate_answer_bytes Bytes 256 * KIB, "Maximum body size of a response of the `forward_auth` server. Larger responses result in 502.";
    RedirectMapBytes redirect_map_bytes Bytes 16 * MIB, "Maximum size of a file of redirects (`redirect = { map = ... }`). Its redirects are held in memory. A configuration with a larger file is not loaded.";
    UsersBytes users_bytes Bytes 4 << 20, "Maximum size of a users file of `basic_auth`. A configuration with a larger file is not loaded.";
    RateWait rate_wait Ms 10_000, "Maximum time for which a site's `rate` delays a request (`queue`). Requests that would have to wait longer are refused.";
    LimitedClients limited_clients Count 65_536, "Maximum number of clients that one `rate` or `concurrent` of a site counts separately, at 16 or 8 bytes each. Beyond the limit, a new client replaces the one that has used least of its rate. The new client inherits that use, so it gains no extra requests.";
    CrawlerFetches crawler_fetches Count 4, "Maximum number of concurrent fetches from one origin for requests with `serve = \"stored\"`: those of crawlers. Further ones wait in a queue of their own.", least(1), most(10_000);
    CrawlerShare crawler_share Percent 5, "Share of the requests to an origin that are for crawlers of language models (class `ai`, `serve = \"stored\"`, GET and HEAD), measured by those for other clients. Further ones wait in the queue for crawlers. 100: no limit.", least(1), most(100);
    CrawlerMinute crawler_minute Count 10, "Number of fetches per minute that crawlers of language models (`serve = \"stored\"`) have from one origin even if its `crawler_share` is smaller.", most(1_000_000);
    CrawlerWait crawler_wait Ms 10_000, "Maximum time that a request with `serve = \"stored\"` waits in the queue for crawlers. After that, it gets 429 with Retry-After.";
    CrawlerQueue crawler_queue Count 64, "Maximum number of requests with `serve = \"stored\"` that wait for a fetch from one origin. Further requests get 429 with Retry-After.", most(100_000);
    CrawlerChecks crawler_checks Count 64, "Maximum number of clients that wait to be verified as search engines by DNS. Further clients are looked up when they come again.", most(10_000);
    CrawlerListBytes crawler_list_bytes Bytes 4 * MIB, "Maximum size of a file of `[crawlers]`. A configuration with a larger file is not loaded.", most(64 * MIB);
    SignatureChecks signature_checks Count 1_000, "Maximum number of signatures of agents (`[crawlers] signatures`) that each core verifies per second. Each takes about 50 to 100 microseconds. Further ones stay unverified.", most(1_000_000);
    SignatureLifetime signature_lifetime Ms 86_400_000, "Maximum time for which the signature of an agent counts after it was made, even if it says that it expires later.", least(1_000);
    KeyDirectoryBytes key_directory_bytes Bytes 64 * KIB, "Maximum size of an agent's key directory, in a file or fetched. A configuration with a larger file is not loaded. After a larger response, the keys stay as they were.", most(16 * MIB);
    KeyDirectoryTimeout key_directory_timeout Ms 10_000, "Maximum time for one fetch of a key directory. After that, the keys stay as they were.", least(100);
    KeyDirectoryRetryWait key_directory_retry_wait Ms 60_000, "Time before the next fetch of a key directory after a failed one. Each further failure doubles it, up to an hour.", least(100);
    WarmFetches warm_fetches Count 16, "Maximum number of concurrent fetches from one origin by which the cache is warmed. The first-byte time of the origin may allow fewer.", least(1), most(10_000);
    WarmShare warm_share Percent 25, "Maximum share of an origin's `max_connections` that warming uses, at least one connection. Warming waits as long as all connections are in use.", least(1), most(100);
    WarmUrls warm_urls Count 100_000, "Maximum number of URLs that wait to be warmed on one site, at some 300 bytes each. Beyond the limit, the coldest are dropped.", least(1), most(10_000_000);
    HotUrls hot_urls Count 10_000, "Maximum number of URLs in the hot list of a site, at some 300 bytes each. Beyond the limit, the coldest are forgotten.", least(1), most(1_000_000);
    SitemapBytes sitemap_bytes Bytes 50 * MIB, "Maximum size of a sitemap that is read to warm a site, after decompression. Pages of a larger one are not warmed.", most(1024 * MIB);
    Sitemaps sitemaps Count 1_000, "Maximum number of sitemaps that are read for one site, those of indexes included. Further ones are not read.", least(1), most(50_000);
    Ranges ranges Count 32, "Maximum number of ranges in one request. With more, the whole representation is sent.", most(1000);
}

/// Limits without an event to count, and the reason.
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
    (Limit::VerifyHold, "how long something is believed"),
    (Limit::OriginH2Window, "a full window is how a body passes at its reader's pace"),
    (Limit::AcmeRetryWait, "how long is waited before a try"),
    (Limit::AcmeRetryWaitMax, "how long is waited before a try"),
    (Limit::OcspRetryWait, "how long is waited before a try"),
    (
        Limit::ErrorPageBytes,
        "a configuration that reaches it is not loaded, and the error names it",
    ),
    (
        Limit::RedirectMapBytes,
        "a configuration that reaches it is not loaded, and the error names it",
    ),
    (
        Limit::CrawlerListBytes,
        "a configuration that reaches it is not loaded, and the error names it",
    ),
    (Limit::CrawlerFetches, "what there is no place for begins later"),
    (Limit::AdviceVisits, "older requests are left out, and advice says how many it has"),
    (Limit::WebhookTries, "a finding that is given up is counted as not sent"),
    (Limit::CrawlerShare, "what there is no place for begins later"),
    (Limit::CrawlerMinute, "what there is no place for begins later"),
    (Limit::SignatureLifetime, "how long something is believed"),
    (Limit::KeyDirectoryRetryWait, "how long is waited before a try"),
    (Limit::WarmFetches, "what there is no place for begins later"),
    (Limit::WarmShare, "what there is no place for begins later"),
    (Limit::HotUrls, "the coldest are forgotten, as they cool"),
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
    /// The limit called `name`, if it exists.
    pub fn by_name(name: &str) -> Option<&'static LimitSpec> {
        TABLE.iter().find(|spec| spec.name == name)
    }
}

impl LimitSpec {
    /// Parses a setting in this limit's unit.
    pub fn parse(&self, text: &str) -> Result<u64, units::Error> {
        match self.unit {
            Unit::Ms => units::parse_duration_ms(text),
            Unit::Bytes | Unit::BytesPerSecond => units::parse_size(text),
            Unit::Count | Unit::Percent => text.trim().parse().map_err(|_| units::Error::Number),
        }
    }

    /// `value` in the notation of a setting.
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
