# What the language has is taken, in whatever case.
vcl 4.1;

backend default {
    .host = "127.0.0.1";
}

acl New {
}

sub vcl_recv {
    if (client.ip ~ New) {
        return (pass);
    }
}
