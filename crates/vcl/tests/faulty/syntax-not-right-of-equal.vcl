# An exclamation mark right of a comparison.
vcl 4.1;

backend default {
    .host = "127.0.0.1";
}

sub vcl_recv {
    if (req.esi_level == 0 && true == !false) {
        return (pass);
    }
}
