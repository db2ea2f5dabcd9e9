# A pattern of regsub() is a constant.
vcl 4.1;

backend default {
    .host = "127.0.0.1";
}

sub vcl_recv {
    set req.url = regsub(req.url, req.http.X, "");
}
