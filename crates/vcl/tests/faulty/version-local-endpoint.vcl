# local.endpoint is of VCL 4.1.
vcl 4.0;

backend default none;

sub vcl_recv {
    set req.http.X = local.endpoint;
}
