# Sizes of bodies.
vcl 4.1;

import std;

backend default {
    .host = "127.0.0.1";
}

sub vcl_recv {
    if (std.cache_req_body(10KB) && std.cache_req_body(1.5MB + 1B)) {
        return (pass);
    }
}
