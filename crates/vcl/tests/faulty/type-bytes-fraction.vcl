# There are no fractions of bytes.
vcl 4.1;

import std;

backend default {
    .host = "127.0.0.1";
}

sub vcl_recv {
    std.cache_req_body(1.5B);
}
