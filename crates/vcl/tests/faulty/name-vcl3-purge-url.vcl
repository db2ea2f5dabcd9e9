# A function of VCL 2.
vcl 4.1;

backend default {
    .host = "127.0.0.1";
}

sub vcl_recv {
    purge_url(req.url);
}
