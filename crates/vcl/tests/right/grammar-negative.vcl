# Negative numbers.
vcl 4.1;

backend default {
    .host = "127.0.0.1";
}

sub vcl_recv {
    set req.http.X = -1 - -2;
    set req.ttl = -(5s);
    set req.grace = - 5s;
}
