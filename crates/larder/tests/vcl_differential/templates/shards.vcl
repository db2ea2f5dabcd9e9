# Two layers: the first spreads URLs over the second by a shard director, and falls back to a
# static page when none is left.
vcl 4.1;

import directors;
import std;

backend store1 { .host = "127.0.0.1"; .port = "${o1}"; }
backend store2 { .host = "127.0.0.1"; .port = "${o2}"; }
backend store3 { .host = "127.0.0.1"; .port = "${o3}"; }
backend last { .host = "127.0.0.1"; .port = "${o4}"; }

sub vcl_init {
    new shards = directors.shard();
    shards.add_backend(store1, ident = "s1");
    shards.add_backend(store2, ident = "s2");
    shards.add_backend(store3, ident = "s3");
    shards.set_rampup(0s);
    shards.reconfigure();
    new safe = directors.fallback();
    safe.add_backend(shards.backend());
    safe.add_backend(last);
}

sub vcl_recv {
    if (req.http.X-Shard-Key) {
        set req.backend_hint = shards.backend(by = KEY, key = shards.key(req.http.X-Shard-Key));
    } else {
        set req.backend_hint = safe.backend();
    }
    if (req.url ~ "^/live") {
        return (pass);
    }
}

sub vcl_backend_fetch {
    if (bereq.retries == 1) {
        set bereq.backend = shards.backend(by = HASH, alt = 1);
    }
}

sub vcl_backend_response {
    if (beresp.status >= 500 && bereq.retries == 0) {
        return (retry);
    }
    set beresp.http.X-Store = beresp.backend;
}

sub vcl_backend_error {
    if (bereq.retries == 0) {
        return (retry);
    }
}
