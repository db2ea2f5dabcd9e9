# req.proto is read only in VCL 4.1.
vcl 4.1;

backend default {
    .host = "127.0.0.1";
}

sub vcl_recv {
    set req.proto = "HTTP/1.0";
}
