# A mask stands within the parentheses.
vcl 4.1;

backend default {
    .host = "127.0.0.1";
}

acl a {
    ("127.0.0.0")/8;
}

sub vcl_recv {
    if (client.ip ~ a) {
        return (pass);
    }
}
