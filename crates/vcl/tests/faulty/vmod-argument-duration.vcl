# A fallback of a wrong type.
vcl 4.1;

import std;

backend default {
    .host = "127.0.0.1";
}

sub vcl_recv {
    set req.ttl = std.duration(req.http.X, 5);
}
