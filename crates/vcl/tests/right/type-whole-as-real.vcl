# Whole numbers as written are real ones where these are wanted.
vcl 4.1;

import std;

backend default {
    .host = "127.0.0.1";
}

sub vcl_recv {
    set req.http.x = std.round(3 / 2) + std.round(2 * 1.5) + std.round((1 + 2) * 2);
    set req.http.y = std.round(1 + req.restarts) + std.round(2 * std.random(1, 2));
}
