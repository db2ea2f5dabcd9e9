# obj can be a name of the program.
vcl 4.1;

backend default {
    .host = "127.0.0.1";
}

acl obj {
}

sub vcl_hit {
    if (client.ip ~ obj && obj.ttl > 0s) {
        return (pass);
    }
}
