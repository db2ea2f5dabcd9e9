# req.esi is of VCL 4.0.
vcl 4.1;

backend default {
    .host = "127.0.0.1";
}

sub vcl_recv {
    set req.esi = false;
}
