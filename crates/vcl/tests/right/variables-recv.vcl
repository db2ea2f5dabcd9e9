# What can be set in vcl_recv.
vcl 4.1;

backend default {
    .host = "127.0.0.1";
}

sub vcl_recv {
    set req.backend_hint = default;
    set req.grace = 5s;
    set req.hash_always_miss = true;
    set req.hash_ignore_busy = false;
    set req.hash_ignore_vary = true;
    set req.method = "GET";
    set req.ttl = 5s;
    set req.url = "/";
    set client.identity = "a";
}
