# What can be set in vcl_backend_response.
vcl 4.1;

backend default {
    .host = "127.0.0.1";
}

sub vcl_backend_response {
    set beresp.ttl = 5s;
    set beresp.grace = 1h;
    set beresp.keep = 1d;
    set beresp.do_esi = true;
    set beresp.do_gzip = false;
    set beresp.do_gunzip = false;
    set beresp.do_stream = true;
    set beresp.uncacheable = false;
    set beresp.status = 200;
    set beresp.reason = "OK";
    set beresp.http.X = beresp.age + beresp.backend + beresp.backend.name + beresp.was_304 + beresp.proto + beresp.time;
    set beresp.filters = "";
    set beresp.storage = storage.Transient;
    set beresp.storage = storage.Transient;
}
