# A function is no class.
vcl 4.1;

import std;

backend default {
    .host = "127.0.0.1";
}

sub vcl_init {
    new d = std.log("a");
}
