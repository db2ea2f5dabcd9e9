# Operators bind as they should.
vcl 4.1;

backend default {
    .host = "127.0.0.1";
}

sub vcl_recv {
    if (req.url == "/" && req.method == "GET" || !req.http.X && (req.http.Y || req.restarts + 2 * 3 > 5)) {
        return (pass);
    }
}
