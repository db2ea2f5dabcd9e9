# bereq is gone.
vcl 4.1;

backend default {
    .host = "127.0.0.1";
}

sub vcl_deliver {
    set resp.http.X = bereq.url;
}
