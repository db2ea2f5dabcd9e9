# An address that is none.
vcl 4.1;

backend default {
    .host = "127.0.0.1";
}

acl a {
    "300.1.2.3.4.5";
}

sub vcl_recv {
    if (client.ip ~ a) {
        return (pass);
    }
}
