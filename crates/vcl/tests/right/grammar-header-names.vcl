# Headers with odd names.
vcl 4.1;

backend default {
    .host = "127.0.0.1";
}

sub vcl_recv {
    set req.http."a.b" = "a";
    set req.http."0" = req.http."a.b";
    unset req.http.X-Y_Z-;
    set req.http.if = "a";
    set req . http . X = "b";
}
