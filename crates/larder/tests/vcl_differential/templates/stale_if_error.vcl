# Rather an old answer than an error: a long grace that only counts when the origin is down, a
# restart for what comes as an error nevertheless, and a page for the worst case.
vcl 4.1;

import std;

backend default {
    .host = "127.0.0.1";
    .port = "${o1}";
    .first_byte_timeout = 2s;
}
backend sorry none;

sub vcl_recv {
    if (req.restarts == 0) {
        unset req.http.X-Stale;
        # As long as all is well, only a short grace.
        if (std.healthy(req.backend_hint)) {
            set req.grace = 100ms;
        }
    } else {
        set req.http.X-Stale = "1";
        set req.backend_hint = sorry;
        set req.grace = 24h;
    }
}

sub vcl_backend_response {
    if (beresp.status < 500) {
        set beresp.ttl = 300ms;
        set beresp.grace = 24h;
        set beresp.keep = 0s;
    } else {
        set beresp.ttl = 0s;
        set beresp.uncacheable = true;
        return (abandon);
    }
}

sub vcl_deliver {
    if (resp.status >= 500 && req.restarts == 0) {
        return (restart);
    }
    if (req.http.X-Stale) {
        set resp.http.Warning = {"111 - "Revalidation Failed""};
        set resp.http.X-Stale = "yes";
    }
}

sub vcl_synth {
    if (resp.status == 503 && req.restarts == 0) {
        return (restart);
    }
    set resp.http.Content-Type = "text/plain";
    set resp.http.Cache-Control = "no-store";
    set resp.body = "Nothing to show.";
    return (deliver);
}
