# All units of time.
vcl 4.1;

backend default {
    .host = "127.0.0.1";
}

sub vcl_recv {
    set req.ttl = 1ms + 1s + 1m + 1h + 1d + 1w + 1y + 1.5h + 3 s;
}
