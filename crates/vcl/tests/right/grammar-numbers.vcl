# Numbers at their limits.
vcl 4.1;

backend default {
    .host = "127.0.0.1";
}

sub vcl_recv {
    set req.http.X = 999999999999999;
    set req.http.X = 999999999999.999;
    set req.http.X = 1.;
    set req.http.X = 007;
}
