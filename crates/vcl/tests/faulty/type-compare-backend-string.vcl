# A backend is compared with a backend.
vcl 4.1;

backend default {
    .host = "127.0.0.1";
}

sub vcl_recv {
    if (req.backend_hint == "default") {
        return (pass);
    }
}
