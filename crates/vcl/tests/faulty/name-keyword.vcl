# A keyword as a name.
vcl 4.1;

backend default {
    .host = "127.0.0.1";
}

acl set {
    "127.0.0.1";
}

sub vcl_recv {
    if (client.ip ~ set) {
        return (pass);
    }
}
