# An integer of sixteen digits.
vcl 4.1;

backend default {
    .host = "127.0.0.1";
}

sub vcl_recv {
    if (req.restarts > 1234567890123456) {
        return (pass);
    }
}
