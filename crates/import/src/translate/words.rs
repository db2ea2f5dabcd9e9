//! Directives whose fate does not depend on their arguments, nor on what stands around them.

use crate::report::{Fate, Ledger};
use crate::syntax::Directive;

/// A fate, with its reason and for what is left also the remedy.
#[derive(Clone, Copy, Debug)]
enum Word {
    Default(&'static str),
    NotNeeded(&'static str),
    Left(&'static str, &'static str),
}

use Word::{Default, Left, NotNeeded};

const BUFFERS: &str = "memory is shared by all connections, within `[memory]`; see `[limits]`";
const KERNEL: &str = "the daemon chooses how it reads files and writes to sockets";
const TABLES: &str = "tables grow as they must";
const ONE_FORM: &str = "each response is stored once and sent in the coding that a client takes";
const TLS_DEFAULTS: &str =
    "TLS 1.2 and 1.3 with modern ciphers, session resumption and rotating tickets are built in";
const OTHER_PROTOCOL: &str = "this protocol is not spoken to applications";
const STREAM: &str = "Larder speaks HTTP only";
const SCRIPT: &str = "programs inside of the server are not run";
const FETCH_ONE: &str = "one fetch serves all requests that wait for a page";

/// All of them, by what they are about.
const WORDS: &[(&[&str], Word)] = &[
    (
        &["events", "http"],
        NotNeeded("this block is not one here; what is in it is answered line by line"),
    ),
    (&["include"], NotNeeded("its files were read in this place")),
    (
        &[
            "pid",
            "daemon",
            "master_process",
            "lock_file",
            "env",
            "working_directory",
            "load_module",
        ],
        NotNeeded("the service manager starts one process, which brings all that it needs"),
    ),
    (
        &[
            "worker_connections",
            "worker_rlimit_nofile",
            "worker_rlimit_core",
            "multi_accept",
            "use",
            "accept_mutex",
            "worker_priority",
            "worker_cpu_affinity",
            "worker_shutdown_timeout",
            "worker_aio_requests",
            "thread_pool",
            "timer_resolution",
            "pcre_jit",
            "debug_connection",
            "accept_mutex_delay",
            "debug_points",
            "ssl_engine",
        ],
        NotNeeded("one thread for each core, and as many descriptors as the system allows"),
    ),
    (
        &[
            "sendfile",
            "sendfile_max_chunk",
            "tcp_nopush",
            "tcp_nodelay",
            "aio",
            "aio_write",
            "directio",
            "directio_alignment",
            "read_ahead",
            "postpone_output",
            "output_buffers",
            "send_lowat",
        ],
        NotNeeded(KERNEL),
    ),
    (
        &[
            "open_file_cache",
            "open_file_cache_valid",
            "open_file_cache_min_uses",
            "open_file_cache_errors",
        ],
        Default("files that are asked for stay open, and are looked up again each second"),
    ),
    (
        &[
            "types_hash_max_size",
            "types_hash_bucket_size",
            "server_names_hash_bucket_size",
            "server_names_hash_max_size",
            "variables_hash_max_size",
            "variables_hash_bucket_size",
            "map_hash_max_size",
            "map_hash_bucket_size",
            "proxy_headers_hash_max_size",
            "proxy_headers_hash_bucket_size",
            "limit_zone",
        ],
        NotNeeded(TABLES),
    ),
    (
        &[
            "client_body_buffer_size",
            "client_header_buffer_size",
            "client_body_temp_path",
            "client_body_in_file_only",
            "client_body_in_single_buffer",
            "connection_pool_size",
            "request_pool_size",
            "proxy_buffer_size",
            "proxy_buffers",
            "proxy_busy_buffers_size",
            "proxy_max_temp_file_size",
            "proxy_temp_file_write_size",
            "proxy_temp_path",
            "fastcgi_buffer_size",
            "grpc_buffer_size",
            "fastcgi_buffers",
            "fastcgi_busy_buffers_size",
            "fastcgi_max_temp_file_size",
            "fastcgi_temp_file_write_size",
            "fastcgi_temp_path",
            "uwsgi_temp_path",
            "scgi_temp_path",
            "subrequest_output_buffer_size",
        ],
        NotNeeded(BUFFERS),
    ),
    (
        &[
            "proxy_buffering",
            "fastcgi_buffering",
            "proxy_request_buffering",
            "fastcgi_request_buffering",
        ],
        Default("bodies stream both ways, through a window of fixed size"),
    ),
    (
        &[
            "gzip_vary",
            "gzip_proxied",
            "gzip_disable",
            "gzip_buffers",
            "gzip_http_version",
            "gzip_window",
            "gzip_hash",
            "gunzip",
            "brotli_buffers",
            "brotli_window",
        ],
        NotNeeded(ONE_FORM),
    ),
    (
        &["gzip", "brotli", "zstd"],
        Default("stored texts and text files are compressed (gzip, Brotli, zstd)"),
    ),
    (
        &[
            "brotli_comp_level",
            "brotli_types",
            "brotli_min_length",
            "zstd_comp_level",
            "zstd_types",
            "zstd_min_length",
        ],
        Default("`[compression]` makes such forms of what is asked for often"),
    ),
    (
        &[
            "ssl_ciphers",
            "ssl_prefer_server_ciphers",
            "ssl_session_cache",
            "ssl_session_timeout",
            "ssl_session_tickets",
            "ssl_session_ticket_key",
            "ssl_dhparam",
            "ssl_ecdh_curve",
            "ssl_buffer_size",
            "ssl_conf_command",
            "ssl_handshake_timeout",
            "ssl_verify_depth",
            "proxy_ssl_protocols",
            "grpc_ssl_protocols",
            "proxy_ssl_ciphers",
            "grpc_ssl_ciphers",
            "proxy_ssl_session_reuse",
            "grpc_ssl_session_reuse",
            "ssl_reject_handshake",
        ],
        Default(TLS_DEFAULTS),
    ),
    (
        &[
            "ssl_stapling",
            "ssl_stapling_verify",
            "ssl_trusted_certificate",
            "ssl_stapling_file",
            "ssl_stapling_responder",
        ],
        Default("`[tls] ocsp` staples responses, and fetches them itself"),
    ),
    (
        &["resolver", "resolver_timeout"],
        NotNeeded("names are resolved as the system says, and again when they expire"),
    ),
    (
        &[
            "proxy_http_version",
            "proxy_socket_keepalive",
            "fastcgi_socket_keepalive",
            "grpc_socket_keepalive",
            "keepalive",
            "keepalive_time",
            "zone",
            "fastcgi_keep_conn",
        ],
        Default("connections to origins are kept open (`idle` in `[[origin]]`)"),
    ),
    (
        &["least_time"],
        Left("this way of balancing is not there", "`balance = \"least-requests\"` comes near"),
    ),
    (
        &[
            "proxy_cache_lock",
            "proxy_cache_lock_timeout",
            "proxy_cache_lock_age",
            "fastcgi_cache_lock",
            "fastcgi_cache_lock_timeout",
            "fastcgi_cache_lock_age",
        ],
        Default(FETCH_ONE),
    ),
    (
        &["proxy_cache_background_update", "fastcgi_cache_background_update"],
        Default("clients get the old page while one fetch renews it (`stale_while_revalidate`)"),
    ),
    (
        &["proxy_cache_revalidate", "fastcgi_cache_revalidate"],
        Default("stale responses are validated (If-None-Match, If-Modified-Since)"),
    ),
    (
        &[
            "proxy_cache_convert_head",
            "proxy_cache_max_range_offset",
            "fastcgi_cache_max_range_offset",
        ],
        Default("HEAD and ranges are answered from the stored response"),
    ),
    (
        &["proxy_cache_min_uses", "fastcgi_cache_min_uses"],
        NotNeeded("what is asked for once leaves memory first"),
    ),
    (&["slice"], Default("large bodies are stored in slices (limit `slices_from`)")),
    (
        &["proxy_redirect"],
        Default("redirects of origins pass as they are: the origin gets the client's Host"),
    ),
    (
        &[
            "proxy_pass_request_headers",
            "proxy_pass_request_body",
            "fastcgi_pass_request_headers",
            "fastcgi_pass_request_body",
            "proxy_pass_header",
            "fastcgi_pass_header",
            "grpc_pass_header",
        ],
        Default("requests and responses pass whole"),
    ),
    (
        &["fastcgi_split_path_info", "fastcgi_index", "fastcgi_catch_stderr"],
        Default("`scripts`, `index` and the path behind a script are rules of the origin"),
    ),
    (
        &["etag", "if_modified_since", "max_ranges", "merge_slashes", "chunked_transfer_encoding"],
        Default("validators, ranges, paths and framing follow the RFCs"),
    ),
    (
        &[
            "server_tokens",
            "server_name_in_redirect",
            "port_in_redirect",
            "absolute_redirect",
            "msie_padding",
            "msie_refresh",
            "recursive_error_pages",
        ],
        NotNeeded("Larder names no version, and redirects to the host that was asked for"),
    ),
    (
        &[
            "reset_timedout_connection",
            "lingering_close",
            "lingering_time",
            "lingering_timeout",
            "keepalive_disable",
        ],
        NotNeeded("connections end as `[limits]` says"),
    ),
    (
        &["underscores_in_headers", "ignore_invalid_headers"],
        Default("field names that could pose as others are not passed on"),
    ),
    (
        &[
            "log_not_found",
            "rewrite_log",
            "log_subrequest",
            "open_log_file_cache",
            "limit_req_log_level",
            "limit_conn_log_level",
        ],
        NotNeeded("missing files are not errors, and refusals are counted (`larder stat`)"),
    ),
    (
        &["disable_symlinks"],
        Default("symbolic links lead only within the directory, and where `linked` says"),
    ),
    (
        &["real_ip_recursive"],
        Default("the last address that is no trusted proxy's is the client's"),
    ),
    (
        &["stub_status", "vhost_traffic_status_display"],
        NotNeeded("`larder stat`, `[metrics]` and the dashboard have the figures"),
    ),
    (
        &["uwsgi_pass", "scgi_pass", "memcached_pass"],
        Left(OTHER_PROTOCOL, "let the application speak HTTP or FastCGI (uwsgi: `http-socket`)"),
    ),
    (&["stream", "mail"], Left(STREAM, "keep nginx or HAProxy for these ports")),
    (
        &[
            "sub_filter",
            "sub_filter_once",
            "sub_filter_types",
            "sub_filter_last_modified",
            "addition_types",
            "add_before_body",
            "add_after_body",
            "image_filter",
            "image_filter_buffer",
            "image_filter_jpeg_quality",
            "xslt_stylesheet",
            "xslt_types",
        ],
        Left("bodies are not changed", "let the application do it, or keep nginx behind Larder"),
    ),
    (&["mirror", "mirror_request_body"], Left("requests go to one origin only", "")),
    (
        &["limit_rate", "limit_rate_after", "proxy_limit_rate"],
        Left("the rate at which a response is sent has no upper limit", ""),
    ),
    (
        &[
            "autoindex",
            "autoindex_exact_size",
            "autoindex_localtime",
            "autoindex_format",
            "random_index",
        ],
        Left("directories are not listed", "keep an index.html that lists the files"),
    ),
    (
        &["dav_methods", "dav_access", "create_full_put_path", "dav_ext_methods"],
        Left("files are read-only", "keep a WebDAV server as an origin"),
    ),
    (
        &[
            "perl",
            "perl_set",
            "js_import",
            "js_content",
            "js_set",
            "js_path",
            "lua_package_path",
            "lua_shared_dict",
            "content_by_lua_block",
            "access_by_lua_block",
            "rewrite_by_lua_block",
            "header_filter_by_lua_block",
            "body_filter_by_lua_block",
            "init_by_lua_block",
            "log_by_lua_block",
            "set_by_lua_block",
            "passenger_enabled",
            "passenger_ruby",
            "passenger_root",
            "passenger_app_env",
        ],
        Left(SCRIPT, "a VCL can decide about requests; applications run beside Larder"),
    ),
    (
        &["secure_link", "secure_link_md5", "secure_link_secret", "auth_jwt", "auth_jwt_key_file"],
        Left("signed links and tokens are not verified", "`forward_auth` asks a server that does"),
    ),
    (
        &["http3", "http3_hq", "quic_retry", "quic_gso", "ssl_early_data"],
        Left("HTTP/3 and early data are not there", "clients use HTTP/2"),
    ),
    (
        &["proxy_ignore_headers", "fastcgi_ignore_headers", "grpc_ignore_headers"],
        NotNeeded("nothing is stored here"),
    ),
    (
        &["grpc_send_timeout"],
        Default("`between_bytes_timeout` ends calls in which both sides are silent"),
    ),
    (
        &["proxy_intercept_errors", "fastcgi_intercept_errors", "grpc_intercept_errors"],
        NotNeeded("there is no page for errors here"),
    ),
    (
        &["proxy_cookie_path", "proxy_cookie_domain", "proxy_cookie_flags"],
        Left("cookies of the application pass as they are", "let the application set them so"),
    ),
    (
        &["charset_types", "override_charset", "source_charset"],
        NotNeeded("all texts get the charset that is named"),
    ),
    (
        &["fastcgi_cache_purge", "proxy_cache_purge"],
        NotNeeded("`larder purge` and PURGE requests (`purge.allow`) remove pages"),
    ),
    (
        &["satisfy"],
        Left("addresses and passwords must both fit", "a route of its own for one of them"),
    ),
    (
        &["modsecurity", "modsecurity_rules_file", "modsecurity_rules"],
        Left("there is no web application firewall", "keep it in front or behind"),
    ),
];

/// Decides about a directive by its name. Returns false for a name that is not in the table.
pub(crate) fn settle(ledger: &mut Ledger, own: &Directive) -> bool {
    settle_as(ledger, own, &own.name)
}

/// Decides about a directive as about one of another name.
pub(crate) fn settle_as(ledger: &mut Ledger, own: &Directive, name: &str) -> bool {
    let Some((_, word)) = WORDS.iter().find(|(names, _)| names.contains(&name)) else {
        return false;
    };
    let id = own.id;
    if matches!(word, Left(..)) && matches!((name, own.arg(0)), (_, "off") | ("satisfy", "all")) {
        ledger.default(id, "it is so here, too");
        return true;
    }
    ledger.settle(
        id,
        match word {
            Default(why) => Fate::Default((*why).to_owned()),
            NotNeeded(why) => Fate::NotNeeded((*why).to_owned()),
            Left(why, instead) => {
                Fate::Left { why: (*why).to_owned(), instead: (*instead).to_owned() }
            }
        },
    );
    true
}
