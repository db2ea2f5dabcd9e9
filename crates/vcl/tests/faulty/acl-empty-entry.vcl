# An entry with nothing in it.
vcl 4.1;

backend default {
    .host = "127.0.0.1";
}

acl a {
    ;
}

sub vcl_recv {
    if (client.ip ~ a) {
        return (pass);
    }
}
