# Arguments by name and in any order.
vcl 4.1;

import std;

backend default {
    .host = "127.0.0.1";
}

sub vcl_recv {
    set req.http.A = std.integer(fallback = 5, s = "x");
    set req.http.B = std.strstr(s2 = "a", s1 = "b");
    set req.http.C = std.tolower("a",);
}
