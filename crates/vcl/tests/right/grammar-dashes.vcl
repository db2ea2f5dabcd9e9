# Dashes in names.
vcl 4.1;

backend default {
    .host = "127.0.0.1";
}

acl my-acl_1 {
    "127.0.0.1";
}

sub my-sub {
    if (client.ip ~ my-acl_1) {
        return (pass);
    }
}

sub vcl_recv {
    call my-sub;
}
