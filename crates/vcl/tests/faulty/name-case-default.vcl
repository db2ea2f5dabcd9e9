# Only default in small letters is a name.
vcl 4.1;

backend default {
    .host = "127.0.0.1";
}

backend Default none;

sub vcl_recv {
    set req.backend_hint = Default;
}
