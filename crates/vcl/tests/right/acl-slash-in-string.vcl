# A mask within the quotes.
vcl 4.1;

backend default {
    .host = "127.0.0.1";
}

acl a {
    "10.0.0.0/8";
}

sub vcl_recv {
    if (client.ip ~ a && !(server.ip ~ a) && client.ip !~ a) {
        return (pass);
    }
}
