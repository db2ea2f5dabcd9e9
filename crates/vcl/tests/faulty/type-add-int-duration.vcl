# A number and a duration are not added.
vcl 4.1;

backend default {
    .host = "127.0.0.1";
}

sub vcl_recv {
    set req.ttl = 1 + 5s;
}
