# Where bytes are wanted, 1m is a megabyte.
vcl 4.1;

import std;

backend default {
    .host = "127.0.0.1";
}

sub vcl_recv {
    if (std.cache_req_body(1m) || std.bytes(req.http.x, 10m + 1KB) == 2m) {
        set req.ttl = 1m + 1s;
    }
}
