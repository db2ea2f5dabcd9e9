# Methods of strings.
vcl 4.1;

backend default {
    .host = "127.0.0.1";
}

sub vcl_recv {
    set req.http.A = req.url.lower();
    set req.http.B = ("a" + req.url).upper();
    set req.http.C = "abc".upper().lower();
    set req.http.D = regsub(req.url, "a", "b").upper();
    set req.http.E = req.http."a.b".lower();
}
