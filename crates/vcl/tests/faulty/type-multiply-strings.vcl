# Strings are not multiplied.
vcl 4.1;

backend default {
    .host = "127.0.0.1";
}

sub vcl_recv {
    set req.http.X = req.url * 2;
}
