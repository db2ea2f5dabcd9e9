# Bans.
vcl 4.1;

import std;

backend default {
    .host = "127.0.0.1";
}

sub vcl_recv {
    ban("req.url ~ " + req.url);
    if (std.ban("obj.http.X == " + req.http.X)) {
        return (synth(200));
    } else {
        return (synth(400, std.ban_error()));
    }
}
