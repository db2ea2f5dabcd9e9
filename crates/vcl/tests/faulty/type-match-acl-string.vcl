# A string is not looked up in an access list.
vcl 4.1;

backend default {
    .host = "127.0.0.1";
}

acl a {
    "127.0.0.1";
}

sub vcl_recv {
    if (req.http.X ~ a) {
        return (pass);
    }
}
