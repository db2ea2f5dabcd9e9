# obj is for reading.
vcl 4.1;

backend default {
    .host = "127.0.0.1";
}

sub vcl_hit {
    unset obj.http.X;
}
