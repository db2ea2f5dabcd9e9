# The alias stands before the path.
vcl 4.1;

backend default {
    .host = "127.0.0.1";
}

import std from "libvmod_std.so" as s;
