# Strings hold any bytes but their end.
vcl 4.1;

backend default {
    .host = "127.0.0.1";
}

sub vcl_recv {
    set req.http.A = "Größe 漢字	";
}
