# Imports in all forms.
vcl 4.1;

backend default {
    .host = "127.0.0.1";
}

import std as s;
import blob from "libvmod_blob.so";
import directors as d from "libvmod_directors.so";

sub vcl_recv {
    s.log("a");
}
