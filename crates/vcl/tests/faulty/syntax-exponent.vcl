# Numbers have no exponent.
vcl 4.1;

backend default {
    .host = "127.0.0.1";
}

sub vcl_recv {
    if (req.restarts > 1e2) {
        return (pass);
    }
}
