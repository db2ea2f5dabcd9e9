# One name for an access list and a backend.
vcl 4.1;

backend default {
    .host = "127.0.0.1";
}

acl default {
    "127.0.0.1";
}

sub vcl_recv {
    if (client.ip ~ default) {
        return (pass);
    }
}
