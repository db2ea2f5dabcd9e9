# A mask wider than the address.
vcl 4.1;

backend default {
    .host = "127.0.0.1";
}

acl a {
    "::1"/129;
}

sub vcl_recv {
    if (client.ip ~ a) {
        return (pass);
    }
}
