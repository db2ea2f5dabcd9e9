# All operators of set.
vcl 4.1;

backend default {
    .host = "127.0.0.1";
}

sub vcl_recv {
    set req.ttl = 1s;
    set req.ttl += 1s;
    set req.ttl -= 1s;
    set req.ttl *= 2;
    set req.ttl /= 2;
    set req.url += "?a";
}
