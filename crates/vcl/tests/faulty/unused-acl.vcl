# An access list that nothing uses.
vcl 4.1;

backend default {
    .host = "127.0.0.1";
}

acl a {
    "127.0.0.1";
}
