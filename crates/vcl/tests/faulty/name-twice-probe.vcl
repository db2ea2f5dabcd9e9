# Two probes of one name.
vcl 4.1;

backend default {
    .host = "127.0.0.1";
}

probe p {
    .url = "/";
}

probe p {
    .url = "/";
}

backend b {
    .host = "127.0.0.1";
    .probe = p;
}

sub vcl_recv {
    set req.backend_hint = b;
}
