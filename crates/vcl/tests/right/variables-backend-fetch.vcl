# What can be set in vcl_backend_fetch.
vcl 4.1;

backend default {
    .host = "127.0.0.1";
}

sub vcl_backend_fetch {
    set bereq.url = "/";
    set bereq.method = "GET";
    set bereq.backend = default;
    set bereq.connect_timeout = 5s;
    set bereq.first_byte_timeout = 5s;
    set bereq.between_bytes_timeout = 5s;
    set bereq.http.X = bereq.xid + bereq.retries + bereq.is_bgfetch + bereq.uncacheable + bereq.proto + bereq.time;
    unset bereq.body;
}
