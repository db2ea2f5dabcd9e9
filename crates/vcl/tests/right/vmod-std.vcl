# Functions of std.
vcl 4.1;

import std;

backend default {
    .host = "127.0.0.1";
}

sub vcl_recv {
    set req.http.A = std.tolower(req.url) + std.toupper("a");
    set req.http.B = std.integer(req.http.X, 0) + std.real("1.5", 0.0) + std.duration("5s", 1s) + std.time("", now);
    set req.http.C = std.ip("a", "127.0.0.1");
    set req.http.D = std.random(0, 1.5) + std.querysort(req.url) + std.port(client.ip);
    std.log("a" + req.url);
    std.syslog(9, "a");
    std.collect(req.http.Cookie);
    std.timestamp("a");
    if (std.healthy(req.backend_hint) && std.strstr(req.url, "a")) {
        return (pass);
    }
}
