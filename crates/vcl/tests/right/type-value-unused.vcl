# The value of a function may be thrown away.
vcl 4.1;

import std;

backend default {
    .host = "127.0.0.1";
}

sub vcl_recv {
    std.tolower(req.url);
}
