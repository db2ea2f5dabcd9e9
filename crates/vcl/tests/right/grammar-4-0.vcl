# A program of VCL 4.0.
vcl 4.0;

backend b none;

sub vcl_recv {
    set req.esi = true;
}
