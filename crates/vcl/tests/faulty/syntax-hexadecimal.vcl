# Numbers are decimal.
vcl 4.1;

backend default {
    .host = "127.0.0.1";
}

sub vcl_recv {
    if (req.restarts > 0x10) {
        return (pass);
    }
}
