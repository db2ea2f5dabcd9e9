# A comparison has a value.
vcl 4.1;

backend default {
    .host = "127.0.0.1";
}

sub vcl_recv {
    set req.http.X = req.url ~ "a";
    set req.http.Y = true && req.http.X;
    set req.hash_always_miss = req.url == "/";
}
