# A backend is told by its name.
vcl 4.1;

backend default {
    .host = "127.0.0.1";
}

sub vcl_recv {
    set req.http.Y = "on " + req.backend_hint + req.backend_hint;
}
