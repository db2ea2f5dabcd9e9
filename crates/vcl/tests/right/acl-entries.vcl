# All kinds of entries.
vcl 4.1;

backend default {
    .host = "127.0.0.1";
}

acl a {
    "127.0.0.1";
    "10.0.0.0"/8;
    ! "10.1.0.0" / 16;
    "::1";
    "2001:db8::"/32;
    ("127.0.0.2");
    !("127.0.0.3");
    (!"127.0.0.4");
    ("10.2.0.0"/16);
    {"127.0.0.5"};
}

sub vcl_recv {
    if (client.ip ~ a && !(server.ip ~ a) && client.ip !~ a) {
        return (pass);
    }
}
