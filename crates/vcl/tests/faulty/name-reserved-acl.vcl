# Names that begin with vcl_ are reserved.
vcl 4.1;

backend default {
    .host = "127.0.0.1";
}

acl vcl_mine {
    "127.0.0.1";
}

sub vcl_recv {
    if (client.ip ~ vcl_mine) {
        return (pass);
    }
}
