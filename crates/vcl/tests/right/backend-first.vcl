# The first backend is the default one.
vcl 4.1;

backend one {
    .host = "127.0.0.1";
}

backend two {
    .host = "127.0.0.2";
}

sub vcl_recv {
    set req.backend_hint = two;
    set req.backend_hint = default;
}
