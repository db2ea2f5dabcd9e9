# The builtin VCL of Larder.
#
# It stands behind every program: a vcl_* of the program that does not return goes on with the one
# here. What Varnish 7.1's does, this does too, and by the same names, so that a program written for
# Varnish can count on it, call its parts, or put its own statements before a part.
#
# A part is changed by a sub of the same name in the program: `sub vcl_req_cookie { ... return; }`
# runs before the one here, and `return (...)` in it leaves this one out.

vcl 4.0;

# --- The client's side ---------------------------------------------------------------------------

# A request has come in. What may be looked up in the cache goes to the hash; what could be meant
# for one client alone passes by the cache; what is no HTTP that can be understood is piped.
sub vcl_recv {
    call vcl_builtin_recv;
    return (hash);
}

sub vcl_builtin_recv {
    call vcl_req_host;
    call vcl_req_method;
    call vcl_req_authorization;
    call vcl_req_cookie;
}

# Host names are the same in capitals and small letters: one object for both. HTTP/1.1 requires the
# field; parts of a page that ESI includes are no requests of their own.
sub vcl_req_host {
    if (req.http.host ~ "[[:upper:]]") {
        set req.http.host = req.http.host.lower();
    }
    if (!req.http.host && req.esi_level == 0 && req.proto == "HTTP/1.1") {
        return (synth(400));
    }
}

# GET and HEAD can be answered from the cache. The other methods of HTTP pass by it. PRI begins a
# connection of HTTP/2 and is no request. What is left, CONNECT and own inventions, is between the
# client and the origin.
sub vcl_req_method {
    if (req.method == "PRI") {
        return (synth(405));
    }
    if (req.method != "GET" && req.method != "HEAD" && req.method != "PUT"
        && req.method != "POST" && req.method != "TRACE" && req.method != "OPTIONS"
        && req.method != "DELETE" && req.method != "PATCH") {
        return (pipe);
    }
    if (req.method != "GET" && req.method != "HEAD") {
        return (pass);
    }
}

# Who says who they are may get an answer of their own.
sub vcl_req_authorization {
    if (req.http.Authorization) {
        return (pass);
    }
}

# So may who sends a cookie.
sub vcl_req_cookie {
    if (req.http.Cookie) {
        return (pass);
    }
}

# Bytes go back and forth until either side closes. "Connection: close" has been set on the way to
# the origin, since whatever comes next on this connection would not be looked at. A program that
# upgrades to WebSocket sets bereq.http.connection itself.
sub vcl_pipe {
    call vcl_builtin_pipe;
    return (pipe);
}

sub vcl_builtin_pipe {
}

sub vcl_pass {
    call vcl_builtin_pass;
    return (fetch);
}

sub vcl_builtin_pass {
}

# What makes two requests the same: the URL and the host, or the address that was connected to.
sub vcl_hash {
    call vcl_builtin_hash;
    return (lookup);
}

sub vcl_builtin_hash {
    hash_data(req.url);
    if (req.http.host) {
        hash_data(req.http.host);
    } else {
        hash_data(server.ip);
    }
}

sub vcl_purge {
    call vcl_builtin_purge;
    return (synth(200, "Purged"));
}

sub vcl_builtin_purge {
}

sub vcl_hit {
    call vcl_builtin_hit;
    return (deliver);
}

sub vcl_builtin_hit {
}

sub vcl_miss {
    call vcl_builtin_miss;
    return (fetch);
}

sub vcl_builtin_miss {
}

sub vcl_deliver {
    call vcl_builtin_deliver;
    return (deliver);
}

sub vcl_builtin_deliver {
}

# A page of our own: what a program asks for by return (synth(...)), and, without being asked, 503
# when nothing else can be answered.
sub vcl_synth {
    call vcl_builtin_synth;
    return (deliver);
}

sub vcl_builtin_synth {
    set resp.http.Content-Type = "text/html; charset=utf-8";
    set resp.http.Retry-After = "5";
    set resp.body = {"<!DOCTYPE html>
<html>
  <head>
    <title>"} + resp.status + " " + resp.reason + {"</title>
  </head>
  <body>
    <h1>Error "} + resp.status + " " + resp.reason + {"</h1>
    <p>"} + resp.reason + {"</p>
    <h3>Guru Meditation:</h3>
    <p>XID: "} + req.xid + {"</p>
    <hr>
    <p>Varnish cache server</p>
  </body>
</html>
"};
}

# --- The origin's side ---------------------------------------------------------------------------

# A GET has no body to send, whatever the client's had.
sub vcl_backend_fetch {
    call vcl_builtin_backend_fetch;
    return (fetch);
}

sub vcl_builtin_backend_fetch {
    if (bereq.method == "GET") {
        unset bereq.body;
    }
}

# The origin says that what is stored is still good (304): it goes on, under the fields of both.
sub vcl_backend_refresh {
    call vcl_builtin_backend_refresh;
    return (merge);
}

sub vcl_builtin_backend_refresh {
    call vcl_refresh_valid;
    call vcl_refresh_conditions;
    call vcl_refresh_status;
}

# What was purged or banned while the origin was asked is good no longer, whatever the origin says:
# the origin is asked once more, for all of it.
sub vcl_refresh_valid {
    if (!obj_stale.is_valid) {
        return (retry);
    }
}

# It was not asked.
sub vcl_refresh_conditions {
    if (!bereq.http.If-Modified-Since && !bereq.http.If-None-Match) {
        return (error(503, "Unexpected 304"));
    }
}

# A program may have asked for something else than a 200. Then it has a part of its own here.
sub vcl_refresh_status {
    if (obj_stale.status != 200) {
        return (error(503, "Invalid object for refresh (status)"));
    }
}

# An answer has come. One that is not for everybody is not stored; that it is not is remembered for
# two minutes, in which requests for it do not wait for each other.
sub vcl_backend_response {
    call vcl_builtin_backend_response;
    return (deliver);
}

sub vcl_builtin_backend_response {
    call vcl_beresp_range;
    if (bereq.uncacheable) {
        return (deliver);
    }
    call vcl_beresp_stale;
    call vcl_beresp_cookie;
    call vcl_beresp_control;
    call vcl_beresp_vary;
}

# A program may take an odd Content-Range off here: what is no part and has one is not used.
sub vcl_beresp_range {
}

sub vcl_beresp_stale {
    if (beresp.ttl <= 0s) {
        call vcl_beresp_hitmiss;
    }
}

sub vcl_beresp_cookie {
    if (beresp.http.Set-Cookie) {
        call vcl_beresp_hitmiss;
    }
}

# Surrogate-Control is for caches such as this one and goes before Cache-Control.
sub vcl_beresp_control {
    if (beresp.http.Surrogate-Control ~ "(?i)no-store"
        || (!beresp.http.Surrogate-Control
            && beresp.http.Cache-Control ~ "(?i:no-cache|no-store|private)")) {
        call vcl_beresp_hitmiss;
    }
}

sub vcl_beresp_vary {
    if (beresp.http.Vary == "*") {
        call vcl_beresp_hitmiss;
    }
}

sub vcl_beresp_hitmiss {
    set beresp.ttl = param.uncacheable_ttl;
    set beresp.uncacheable = true;
    return (deliver);
}

# The origin has not answered.
sub vcl_backend_error {
    call vcl_builtin_backend_error;
    return (deliver);
}

sub vcl_builtin_backend_error {
    set beresp.http.Content-Type = "text/html; charset=utf-8";
    set beresp.http.Retry-After = "5";
    set beresp.body = {"<!DOCTYPE html>
<html>
  <head>
    <title>"} + beresp.status + " " + beresp.reason + {"</title>
  </head>
  <body>
    <h1>Error "} + beresp.status + " " + beresp.reason + {"</h1>
    <p>"} + beresp.reason + {"</p>
    <h3>Guru Meditation:</h3>
    <p>XID: "} + bereq.xid + {"</p>
    <hr>
    <p>Varnish cache server</p>
  </body>
</html>
"};
}

# --- The program's life --------------------------------------------------------------------------

sub vcl_init {
    return (ok);
}

sub vcl_fini {
    return (ok);
}
