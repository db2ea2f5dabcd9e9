# Anything joins a string.
vcl 4.1;

backend default {
    .host = "127.0.0.1";
}

sub vcl_recv {
    set req.http.A = "a" + req.restarts + now + client.ip + req.ttl + true + req.backend_hint;
}
