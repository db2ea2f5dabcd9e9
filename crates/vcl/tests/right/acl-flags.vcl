# Flags.
vcl 4.1;

backend default {
    .host = "127.0.0.1";
}

acl a +log -pedantic +table -log {
    "10.1.2.3"/8;
}

sub vcl_recv {
    if (client.ip ~ a && !(server.ip ~ a) && client.ip !~ a) {
        return (pass);
    }
}
