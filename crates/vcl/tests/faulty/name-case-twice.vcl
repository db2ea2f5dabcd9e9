# Names that differ in case are one.
vcl 4.1;

backend default {
    .host = "127.0.0.1";
}

acl internal {
}

acl Internal {
}

sub vcl_recv {
    if (client.ip ~ internal) {
        return (pass);
    }
}
