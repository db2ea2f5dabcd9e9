# More bytes than a number can count.
vcl 4.1;

import std;

backend default {
    .host = "127.0.0.1";
}

sub vcl_recv {
    std.cache_req_body(8192PB);
}
