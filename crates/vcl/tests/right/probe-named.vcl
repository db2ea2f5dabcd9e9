# A named probe.
vcl 4.1;

probe p {
    .request = "GET / HTTP/1.1"
        "Host: example.com"
        "Connection: close";
    .window = 64;
    .threshold = 64;
}

backend one {
    .host = "127.0.0.1";
    .probe = p;
}

backend two {
    .host = "127.0.0.2";
    .probe = p;
}

sub vcl_recv {
    set req.backend_hint = two;
}
