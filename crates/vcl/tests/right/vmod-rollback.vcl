# Both requests can be rolled back.
vcl 4.1;

import std;

backend default {
    .host = "127.0.0.1";
}

sub vcl_backend_response {
    std.rollback(bereq);
}
