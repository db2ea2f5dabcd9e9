# A duration has a unit.
vcl 4.1;

backend default {
    .host = "127.0.0.1";
}

sub vcl_backend_response {
    set beresp.ttl = 120;
}
