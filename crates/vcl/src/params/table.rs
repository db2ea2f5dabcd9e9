//! Table of Varnish 7.1's parameters: names, units, defaults and bounds as there, and their effect
//! here. No parameter is listed anywhere else.

use ValueKind::{Absent, Bytes, Flags, Mask, Number, Pool, Real, Seconds, Switch, Text};

/// Kind of a parameter's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueKind {
    /// The parameter does not exist on this system.
    Absent,
    /// A number with a fraction.
    Real,
    /// Seconds, with a fraction.
    Seconds,
    /// A number of bytes.
    Bytes,
    /// A whole number.
    Number,
    /// On or off.
    Switch,
    /// Any text.
    Text,
    /// Three numbers: fewest, most, seconds.
    Pool,
    /// Flags that can be switched on.
    Flags(&'static [&'static str]),
    /// Names that can be masked.
    Mask(&'static [&'static str]),
}

/// A row of the table.
#[derive(Clone, Copy, Debug)]
pub struct Spec {
    /// The parameter.
    pub param: Param,
    /// The name.
    pub name: &'static str,
    /// The kind of its values.
    pub kind: ValueKind,
    /// Default, as written.
    pub default: &'static str,
    /// The smallest value, as written.
    pub min: Option<&'static str>,
    /// The largest value, as written.
    pub max: Option<&'static str>,
    /// Unit as text; empty if none.
    pub units: &'static str,
    /// Varnish's flags: `obj_sticky` (applies to new objects only), `delayed_effect`,
    /// `must_restart`, `must_reload`, `experimental`, `wizard`, `build_options`.
    pub flags: &'static [&'static str],
    /// Effect here.
    pub about: &'static str,
}

impl Spec {
    /// The parameter named `name`.
    pub fn find(name: &str) -> Option<&'static Self> {
        TABLE.iter().find(|spec| spec.name == name)
    }
}

macro_rules! params {
    ($($param:ident $name:literal $kind:expr, $default:literal $min:expr, $max:expr, $units:literal,
       $flags:expr, $about:literal;)*) => {
        /// A parameter.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(usize)]
        pub enum Param { $(#[doc = concat!("`", $name, "`: ", $about)] $param,)* }

        /// All parameters, sorted by name.
        pub const TABLE: &[Spec] = &[$(Spec {
            param: Param::$param,
            name: $name,
            kind: $kind,
            default: $default,
            min: $min,
            max: $max,
            units: $units,
            flags: $flags,
            about: $about,
        },)*];
    };
}

params! {
    AcceptFilter "accept_filter" Absent, "" None, None, "", &[], "Not of this system.";
    AcceptorSleepDecay "acceptor_sleep_decay" Real, "0.9" Some("0"), Some("1"), "",
        &["experimental"],
        "Accepted, and without effect: accepting pauses for a fixed time when descriptors run out.";
    AcceptorSleepIncr "acceptor_sleep_incr" Seconds, "0.000" Some("0.000"), Some("1.000"),
        "seconds",
        &["experimental"],
        "Accepted, and without effect: accepting pauses for a fixed time when descriptors run out.";
    AcceptorSleepMax "acceptor_sleep_max" Seconds, "0.050" Some("0.000"), Some("10.000"), "seconds",
        &["experimental"],
        "Accepted, and without effect: accepting pauses for a fixed time when descriptors run out.";
    AutoRestart "auto_restart" Switch, "on" None, None, "bool", &[],
        "Accepted, and without effect: there is one process, and the service manager restarts it.";
    BackendIdleTimeout "backend_idle_timeout" Seconds, "60.000" Some("1.000"), None, "seconds", &[],
        "How long an idle connection to a backend is kept.";
    BackendLocalErrorHolddown "backend_local_error_holddown" Seconds, "10.000" Some("0.000"), None, "seconds",
        &["experimental"],
        "How long no connection to a backend is tried after a local error: no free address or \
         port, or no permission.";
    BackendRemoteErrorHolddown "backend_remote_error_holddown" Seconds, "0.250" Some("0.000"), None, "seconds",
        &["experimental"],
        "How long no connection to a backend is tried after the backend has refused one, or was \
         unreachable.";
    BackendWaitLimit "backend_wait_limit" Number, "0" Some("0"), None, "", &[],
        "Most fetches that wait for a connection to a backend with `max_connections`, unless the \
         backend sets a limit. Of Varnish 7.6.";
    BackendWaitTimeout "backend_wait_timeout" Seconds, "30.000" Some("0.000"), None, "seconds", &[],
        "How long such a fetch waits, unless the backend sets a time. Of Varnish 7.6.";
    BanCutoff "ban_cutoff" Number, "0" Some("0"), None, "bans", &["experimental"],
        "Accepted, and without effect: the sweep of bans completes the oldest when there are more than the limit `bans`.";
    BanDups "ban_dups" Switch, "on" None, None, "bool", &[],
        "Accepted, and without effect: equal bans are kept once.";
    BanLurkerAge "ban_lurker_age" Seconds, "60.000" Some("0.000"), None, "seconds", &[],
        "Accepted, and without effect: the sweep of bans begins once a second.";
    BanLurkerBatch "ban_lurker_batch" Number, "1000" Some("1"), None, "", &[],
        "Accepted, and without effect: the sweep of bans takes what a core has time for.";
    BanLurkerHoldoff "ban_lurker_holdoff" Seconds, "0.010" Some("0.000"), None, "seconds",
        &["experimental"],
        "Accepted, and without effect: the sweep of bans yields to requests.";
    BanLurkerSleep "ban_lurker_sleep" Seconds, "0.010" Some("0.000"), None, "seconds", &[],
        "Accepted, and without effect: the sweep of bans begins once a second. 0 does not end it.";
    BetweenBytesTimeout "between_bytes_timeout" Seconds, "60.000" Some("0.000"), None, "seconds",
        &[],
        "Longest wait between two bytes of a backend's response, unless backend or VCL sets it. 0 \
         is no limit.";
    CcCommand "cc_command" Text, "" None, None, "", &["must_reload", "build_options"],
        "Accepted, and without effect: VCL is compiled without a C compiler.";
    CcWarnings "cc_warnings" Text, "" None, None, "", &["must_reload", "build_options"],
        "Accepted, and without effect: VCL is compiled without a C compiler.";
    CliLimit "cli_limit" Bytes, "48k" Some("128b"), Some("99999999b"), "bytes", &[],
        "Longest reply on this port; a longer one is truncated, with status 201. A reply to \
         `stats.json` never is.";
    CliTimeout "cli_timeout" Seconds, "60.000" Some("0.000"), None, "seconds", &[],
        "Accepted, and without effect: there is no second process to wait for.";
    ClockSkew "clock_skew" Number, "10" Some("0"), None, "seconds", &[],
        "Clock difference to backends within which Expires is taken relative to Date.";
    ClockStep "clock_step" Seconds, "1.000" Some("0.000"), None, "seconds", &[],
        "Accepted, and without effect: timers use the monotonic clock.";
    ConnectTimeout "connect_timeout" Seconds, "3.500" Some("0.000"), None, "seconds", &[],
        "Longest wait for a connection to a backend, unless backend or VCL sets it. 0 is no limit.";
    CritbitCooloff "critbit_cooloff" Seconds, "180.000" Some("60.000"), Some("254.000"), "seconds",
        &["wizard"],
        "Accepted, and without effect: the index is no critbit tree.";
    Debug "debug" Flags(DEBUG), "none" None, None, "", &[],
        "Accepted, and without effect: these are switches for Varnish's own developers.";
    DefaultGrace "default_grace" Seconds, "10.000" Some("0.000"), None, "seconds", &["obj_sticky"],
        "How long a response that sets no grace is served stale while a new one is fetched.";
    DefaultKeep "default_keep" Seconds, "0.000" Some("0.000"), None, "seconds", &["obj_sticky"],
        "How long beyond ttl and grace a response is kept, for conditional requests to the backend.";
    DefaultTtl "default_ttl" Seconds, "120.000" Some("0.000"), None, "seconds", &["obj_sticky"],
        "Lifetime of a response that sets none.";
    EsiParallel "esi_parallel" Number, "0" Some("0"), None, "fragments", &[],
        "Of Larder: most fragments of a page that are fetched at the same time. With 1 they are \
         fetched one after the other, as in Varnish; with 0 the limit `esi_parallel` applies.";
    Experimental "experimental" Flags(EXPERIMENTAL), "none" None, None, "", &[],
        "Accepted, and without effect: these are switches for Varnish's own developers.";
    Feature "feature" Flags(FEATURES), "+validate_headers" None, None, "", &[],
        "Switches. `http2` makes plain listeners speak HTTP/2; `esi_*` and `validate_headers` \
         affect VCL; the others are accepted, and without effect.";
    FetchChunksize "fetch_chunksize" Bytes, "16k" Some("4k"), None, "bytes", &["experimental"],
        "Accepted, and without effect: bodies are kept in pieces of the allocator's sizes.";
    FetchMaxchunksize "fetch_maxchunksize" Bytes, "0.25G" Some("64k"), None, "bytes",
        &["experimental"],
        "Accepted, and without effect: bodies are kept in pieces of the allocator's sizes.";
    FirstByteTimeout "first_byte_timeout" Seconds, "60.000" Some("0.000"), None, "seconds", &[],
        "Longest wait for a backend's response to begin, unless backend or VCL sets it. 0 is no \
         limit.";
    GzipBuffer "gzip_buffer" Bytes, "32k" Some("2k"), None, "bytes", &["experimental"],
        "Accepted, and without effect: bodies are coded in steps of 16 KiB, and output is sent \
         when the body pauses.";
    GzipLevel "gzip_level" Number, "6" Some("0"), Some("9"), "", &[],
        "Level of gzip for bodies that a program has compressed; 0 counts as 1.";
    GzipMemlevel "gzip_memlevel" Number, "8" Some("1"), Some("9"), "", &[],
        "Accepted, and without effect: the library has no such choice, and works as zlib does at 8.";
    H2HeaderTableSize "h2_header_table_size" Bytes, "4k" Some("0b"), None, "bytes", &[],
        "Accepted, and without effect: the size is the protocol's own, 4 KiB.";
    H2InitialWindowSize "h2_initial_window_size" Bytes, "65535b" Some("65535b"), Some("2147483647b"), "bytes",
        &[],
        "Accepted, and without effect: windows follow from the limit `h2_memory`.";
    H2MaxConcurrentStreams "h2_max_concurrent_streams" Number, "100" Some("0"), None, "streams",
        &[],
        "Requests at once on one HTTP/2 connection.";
    H2MaxFrameSize "h2_max_frame_size" Bytes, "16k" Some("16k"), Some("16777215b"), "bytes", &[],
        "Accepted, and without effect: the size is the protocol's own, 16 KiB.";
    H2MaxHeaderListSize "h2_max_header_list_size" Bytes, "2147483647b" Some("0b"), None, "bytes",
        &[],
        "Accepted, and without effect: the limit `header_bytes` applies.";
    H2RxWindowIncrement "h2_rx_window_increment" Bytes, "1M" Some("1M"), Some("1G"), "bytes",
        &["wizard"],
        "Accepted, and without effect: windows follow from the limit `h2_memory`.";
    H2RxWindowLowWater "h2_rx_window_low_water" Bytes, "10M" Some("65535b"), Some("1G"), "bytes",
        &["wizard"],
        "Accepted, and without effect: windows follow from the limit `h2_memory`.";
    H2RxbufStorage "h2_rxbuf_storage" Text, "Transient" None, None, "", &["must_restart"],
        "Accepted, and without effect: bodies of requests are never stored.";
    Http1Iovs "http1_iovs" Number, "64" Some("5"), Some("1024"), "struct iovec (=16 bytes)",
        &["wizard"],
        "Accepted, and without effect: a response is written in as few system calls as its pieces allow.";
    HttpGzipSupport "http_gzip_support" Switch, "on" None, None, "bool", &[],
        "Whether Accept-Encoding of requests is reduced to gzip or nothing, and gzip asked for of backends.";
    HttpMaxHdr "http_max_hdr" Number, "64" Some("32"), Some("65535"), "header lines", &[],
        "Most header lines of one head. A request with more is rejected, a fetch with more fails, \
         and a program that adds more fails the response. The parts of the first line count where \
         Varnish counts them.";
    HttpRangeSupport "http_range_support" Switch, "on" None, None, "bool", &[],
        "Whether a request with Range gets a part of a stored response.";
    HttpReqHdrLen "http_req_hdr_len" Bytes, "8k" Some("40b"), None, "bytes", &[],
        "Longest header line of a request.";
    HttpReqSize "http_req_size" Bytes, "32k" Some("0.25k"), None, "bytes", &[],
        "Longest head of a request.";
    HttpRespHdrLen "http_resp_hdr_len" Bytes, "8k" Some("40b"), None, "bytes", &[],
        "Longest header line of a backend's response.";
    HttpRespSize "http_resp_size" Bytes, "32k" Some("0.25k"), None, "bytes", &[],
        "Longest head of a backend's response.";
    IdleSendTimeout "idle_send_timeout" Seconds, "60.000" Some("0.000"), None, "seconds",
        &["delayed_effect"],
        "Longest wait for a client to take a byte of its response.";
    ListenDepth "listen_depth" Number, "1024" Some("0"), None, "connections", &["must_restart"],
        "Accepted, and without effect: the queue is as long as the system allows.";
    LruInterval "lru_interval" Seconds, "2.000" Some("0.000"), None, "seconds", &["experimental"],
        "Accepted, and without effect: a hit moves nothing: eviction is S3-FIFO.";
    MaxEsiDepth "max_esi_depth" Number, "5" Some("0"), None, "levels", &[],
        "Most levels of fragments below a page. Deeper fragments are left out.";
    MaxRestarts "max_restarts" Number, "4" Some("0"), None, "restarts", &[],
        "How often a request may be restarted.";
    MaxRetries "max_retries" Number, "4" Some("0"), None, "retries", &[],
        "How often a fetch may be retried.";
    MaxVcl "max_vcl" Number, "100" Some("0"), None, "", &[],
        "How many VCLs may be loaded before `max_vcl_handling` applies; labels do not count.";
    MaxVclHandling "max_vcl_handling" Number, "1" Some("0"), Some("2"), "", &[],
        "What happens when one more than `max_vcl` is loaded: 0 nothing, 1 a warning, 2 it is \
         rejected.";
    NukeLimit "nuke_limit" Number, "50" Some("0"), None, "allocations", &["experimental"],
        "Accepted, and without effect: a fetch evicts what it needs.";
    Pcre2DepthLimit "pcre2_depth_limit" Number, "20" Some("1"), None, "", &[],
        "How deep a regular expression with look-around or back-references may recurse.";
    Pcre2JitCompilation "pcre2_jit_compilation" Switch, "on" None, None, "bool", &[],
        "Accepted, and without effect: other expressions run in linear time.";
    Pcre2MatchLimit "pcre2_match_limit" Number, "10000" Some("1"), None, "", &[],
        "How many steps a regular expression with look-around or back-references may take.";
    PingInterval "ping_interval" Number, "3" Some("0"), None, "seconds", &["must_restart"],
        "Accepted, and without effect: there is no second process to ask.";
    PipeSessMax "pipe_sess_max" Number, "0" Some("0"), None, "connections", &[],
        "Most connections in a pipe at once; further ones get a 503. With 0 the limit `tunnels` \
         applies.";
    PipeTaskDeadline "pipe_task_deadline" Seconds, "0.000" Some("0.000"), None, "seconds", &[],
        "How long a pipe may last, unless VCL sets it. 0 is no limit. Of Varnish 7.5.";
    PipeTimeout "pipe_timeout" Seconds, "60.000" Some("0.000"), None, "seconds", &[],
        "How long a piped connection may be silent on both sides.";
    PoolReq "pool_req" Pool, "10,100,10" None, None, "", &[],
        "Accepted, and without effect: there are no pools of this kind.";
    PoolSess "pool_sess" Pool, "10,100,10" None, None, "", &[],
        "Accepted, and without effect: there are no pools of this kind.";
    PoolVbo "pool_vbo" Pool, "10,100,10" None, None, "", &[],
        "Accepted, and without effect: there are no pools of this kind.";
    PreferIpv6 "prefer_ipv6" Switch, "off" None, None, "bool", &[],
        "Connect to the IPv6 address of a backend that has both before the IPv4 one. Counts when a VCL is loaded.";
    RushExponent "rush_exponent" Number, "3" Some("2"), None, "requests per request",
        &["experimental"],
        "Accepted, and without effect: all waiters of a fetch read its response while it arrives.";
    SendTimeout "send_timeout" Seconds, "600.000" Some("0.000"), None, "seconds",
        &["delayed_effect"],
        "Longest time for sending one response over HTTP/1. 0 is no limit.";
    Shortlived "shortlived" Seconds, "10.000" Some("0.000"), None, "seconds", &[],
        "A response that is kept for less, grace and keep included, belongs to the storage `Transient`.";
    SigsegvHandler "sigsegv_handler" Switch, "on" None, None, "bool", &["must_restart"],
        "Accepted, and without effect: a fault ends the process as the system does it.";
    SyslogCliTraffic "syslog_cli_traffic" Switch, "on" None, None, "bool", &[],
        "Whether commands of this port are written to the daemon's log.";
    TcpFastopen "tcp_fastopen" Switch, "off" None, None, "bool", &["must_restart"],
        "Accepted, and without effect: the system's own setting applies.";
    TcpKeepaliveIntvl "tcp_keepalive_intvl" Seconds, "75.000" Some("1.000"), Some("100.000"),
        "seconds",
        &["experimental"],
        "Accepted, and without effect: the system's own setting applies.";
    TcpKeepaliveProbes "tcp_keepalive_probes" Number, "9" Some("1"), Some("100"), "probes",
        &["experimental"],
        "Accepted, and without effect: the system's own setting applies.";
    TcpKeepaliveTime "tcp_keepalive_time" Seconds, "7200.000" Some("1.000"), Some("7200.000"),
        "seconds",
        &["experimental"],
        "Accepted, and without effect: the system's own setting applies.";
    ThreadPoolAddDelay "thread_pool_add_delay" Seconds, "0.000" Some("0.000"), None, "seconds",
        &["experimental"],
        "Accepted, and without effect: each core has one thread.";
    ThreadPoolDestroyDelay "thread_pool_destroy_delay" Seconds, "1.000" Some("0.010"), None, "seconds",
        &["delayed_effect", "experimental"],
        "Accepted, and without effect: each core has one thread.";
    ThreadPoolFailDelay "thread_pool_fail_delay" Seconds, "0.200" Some("0.010"), None, "seconds",
        &["experimental"],
        "Accepted, and without effect: each core has one thread.";
    ThreadPoolMax "thread_pool_max" Number, "5000" Some("100"), None, "threads",
        &["delayed_effect"],
        "Accepted, and without effect: each core has one thread.";
    ThreadPoolMin "thread_pool_min" Number, "100" Some("5"), None, "threads", &["delayed_effect"],
        "Accepted, and without effect: each core has one thread.";
    ThreadPoolReserve "thread_pool_reserve" Number, "0" Some("0"), None, "threads",
        &["delayed_effect"],
        "Accepted, and without effect: each core has one thread.";
    ThreadPoolStack "thread_pool_stack" Bytes, "80k" Some("16k"), None, "bytes",
        &["delayed_effect"],
        "Accepted, and without effect: each core has one thread.";
    ThreadPoolTimeout "thread_pool_timeout" Seconds, "300.000" Some("10.000"), None, "seconds",
        &["delayed_effect", "experimental"],
        "Accepted, and without effect: each core has one thread.";
    ThreadPoolWatchdog "thread_pool_watchdog" Seconds, "60.000" Some("0.100"), None, "seconds",
        &["experimental"],
        "Accepted, and without effect: each core has one thread.";
    ThreadPools "thread_pools" Number, "2" Some("1"), Some("32"), "pools",
        &["delayed_effect", "experimental"],
        "Accepted, and without effect: each core has one thread.";
    ThreadQueueLimit "thread_queue_limit" Number, "20" Some("0"), None, "requests",
        &["experimental"],
        "Accepted, and without effect: each core has one thread.";
    ThreadStatsRate "thread_stats_rate" Number, "10" Some("0"), None, "requests", &["experimental"],
        "Accepted, and without effect: every core has counters of its own.";
    TimeoutIdle "timeout_idle" Seconds, "5.000" Some("0.000"), None, "seconds", &[],
        "How long a client's idle connection is kept.";
    TimeoutLinger "timeout_linger" Seconds, "0.050" Some("0.000"), None, "seconds",
        &["experimental"],
        "Accepted, and without effect: an idle connection holds no thread.";
    TransitBuffer "transit_buffer" Bytes, "0b" Some("0b"), None, "bytes", &[],
        "How many bytes a backend may be ahead of a client in a body that is not stored. With 0 \
         the limit `window_bytes` applies. Of Varnish 7.3.";
    UncacheableTtl "uncacheable_ttl" Seconds, "120.000" Some("0.000"), None, "seconds", &[],
        "How long the builtin VCL remembers that a response is not stored. Of Varnish 8.0.";
    VaryNotice "vary_notice" Number, "10" Some("1"), None, "variants", &[],
        "Accepted, and without effect: the limit `variants` applies.";
    VccAllowInlineC "vcc_allow_inline_c" Switch, "off" None, None, "bool", &[],
        "Accepted, and without effect: VCL is compiled without a C compiler.";
    VccErrUnref "vcc_err_unref" Switch, "on" None, None, "bool", &[],
        "Whether an unused declaration of a VCL is an error; off, it is a warning.";
    VccUnsafePath "vcc_unsafe_path" Switch, "on" None, None, "bool", &[],
        "Whether `include` and `vcl.load` accept absolute paths and paths with `..`.";
    VclCooldown "vcl_cooldown" Seconds, "600.000" Some("1.000"), None, "seconds", &[],
        "How long a VCL in state auto that is no longer used stays warm.";
    VclPath "vcl_path" Text, "/etc/varnish:/usr/share/varnish/vcl" None, None, "",
        &["build_options"],
        "Directories, separated by colons, in which relative names of VCL files are searched.";
    VmodPath "vmod_path" Text, "" None, None, "", &["build_options"],
        "Accepted, and without effect: VMODs are built in.";
    VslBuffer "vsl_buffer" Bytes, "16k" Some("267"), None, "bytes", &[],
        "Accepted, and without effect: the log ring's size is a setting of its own.";
    VslMask "vsl_mask" Mask(TAGS), "default" None, None, "", &[],
        "Accepted, and without effect: records hold what `larder log` shows.";
    VslReclen "vsl_reclen" Bytes, "255b" Some("16b"), Some("16372"), "bytes", &[],
        "Accepted, and without effect: records hold what `larder log` shows.";
    VslSpace "vsl_space" Bytes, "80M" Some("1M"), Some("4G"), "bytes", &["must_restart"],
        "Accepted, and without effect: the log ring's size is a setting of its own.";
    VsmFreeCooldown "vsm_free_cooldown" Seconds, "60.000" Some("10.000"), Some("600.000"),
        "seconds",
        &[],
        "Accepted, and without effect: there is no shared memory of this kind.";
    WorkspaceBackend "workspace_backend" Bytes, "96k" Some("1k"), None, "bytes",
        &["delayed_effect"],
        "Accepted, and without effect: memory is taken as it is needed.";
    WorkspaceClient "workspace_client" Bytes, "96k" Some("9k"), None, "bytes", &["delayed_effect"],
        "Accepted, and without effect: memory is taken as it is needed.";
    WorkspaceSession "workspace_session" Bytes, "0.75k" Some("384b"), None, "bytes",
        &["delayed_effect"],
        "Accepted, and without effect: memory is taken as it is needed.";
    WorkspaceThread "workspace_thread" Bytes, "2k" Some("0.25k"), Some("8k"), "bytes",
        &["delayed_effect"],
        "Accepted, and without effect: memory is taken as it is needed.";
}

/// Flags of `feature`.
pub const FEATURES: &[&str] = &[
    "http2",
    "short_panic",
    "no_coredump",
    "https_scheme",
    "http_date_postel",
    "esi_ignore_https",
    "esi_disable_xml_check",
    "esi_ignore_other_elements",
    "esi_remove_bom",
    "esi_include_onerror",
    "wait_silo",
    "validate_headers",
    "busy_stats_rate",
    "trace",
];

/// Flags of `debug`.
pub const DEBUG: &[&str] = &[
    "req_state",
    "workspace",
    "waitinglist",
    "syncvsl",
    "hashedge",
    "vclrel",
    "lurker",
    "esi_chop",
    "flush_head",
    "vtc_mode",
    "witness",
    "vsm_keep",
    "slow_acceptor",
    "h2_nocheck",
    "vmod_so_keep",
    "processors",
    "protocol",
    "vcl_keep",
    "lck",
];

/// Flags of `experimental`.
pub const EXPERIMENTAL: &[&str] = &["drop_pools"];

/// Names of `vsl_mask`: the tags of Varnish's log.
pub const TAGS: &[&str] = &[
    "Debug",
    "Error",
    "CLI",
    "SessOpen",
    "SessClose",
    "BackendOpen",
    "BackendReuse",
    "BackendClose",
    "HttpGarbage",
    "Proxy",
    "ProxyGarbage",
    "Backend",
    "Length",
    "FetchError",
    "ReqMethod",
    "ReqURL",
    "ReqProtocol",
    "ReqStatus",
    "ReqReason",
    "ReqHeader",
    "ReqUnset",
    "ReqLost",
    "RespMethod",
    "RespURL",
    "RespProtocol",
    "RespStatus",
    "RespReason",
    "RespHeader",
    "RespUnset",
    "RespLost",
    "BereqMethod",
    "BereqURL",
    "BereqProtocol",
    "BereqStatus",
    "BereqReason",
    "BereqHeader",
    "BereqUnset",
    "BereqLost",
    "BerespMethod",
    "BerespURL",
    "BerespProtocol",
    "BerespStatus",
    "BerespReason",
    "BerespHeader",
    "BerespUnset",
    "BerespLost",
    "ObjMethod",
    "ObjURL",
    "ObjProtocol",
    "ObjStatus",
    "ObjReason",
    "ObjHeader",
    "ObjUnset",
    "ObjLost",
    "BogoHeader",
    "LostHeader",
    "TTL",
    "Fetch_Body",
    "VCL_acl",
    "VCL_call",
    "VCL_trace",
    "VCL_return",
    "ReqStart",
    "Hit",
    "HitPass",
    "ExpBan",
    "ExpKill",
    "WorkThread",
    "ESI_xmlerror",
    "Hash",
    "Backend_health",
    "VCL_Log",
    "VCL_Error",
    "Gzip",
    "Link",
    "Begin",
    "End",
    "VSL",
    "Storage",
    "Timestamp",
    "ReqAcct",
    "PipeAcct",
    "BereqAcct",
    "VfpAcct",
    "Witness",
    "BackendStart",
    "H2RxHdr",
    "H2RxBody",
    "H2TxHdr",
    "H2TxBody",
    "HitMiss",
    "Filters",
    "SessError",
    "VCL_use",
    "Notice",
    "VdpAcct",
];

/// Tags that `vsl_mask` masks by default.
pub const MASKED: &[&str] = &[
    "Debug",
    "ObjProtocol",
    "ObjStatus",
    "ObjReason",
    "ObjHeader",
    "VCL_trace",
    "ExpKill",
    "WorkThread",
    "Hash",
    "VfpAcct",
    "H2RxHdr",
    "H2RxBody",
    "H2TxHdr",
    "H2TxBody",
    "VdpAcct",
];
