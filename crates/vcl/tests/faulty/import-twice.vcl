# One name for two modules.
vcl 4.1;

backend default {
    .host = "127.0.0.1";
}

import std as s;
import blob as s;

sub vcl_recv {
    return (hash);
}
