# An empty list.
vcl 4.1;

backend default {
    .host = "127.0.0.1";
}

acl a {
    # nobody
}

sub vcl_recv {
    if (client.ip ~ a && !(server.ip ~ a) && client.ip !~ a) {
        return (pass);
    }
}
