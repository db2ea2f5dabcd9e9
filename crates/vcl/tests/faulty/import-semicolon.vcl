# The semicolon of an import is missing.
vcl 4.1;

backend default {
    .host = "127.0.0.1";
}

import std

sub vcl_recv {
    return (hash);
}
