# beresp is not there yet.
vcl 4.1;

backend default {
    .host = "127.0.0.1";
}

sub vcl_recv {
    set beresp.ttl = 5s;
}
