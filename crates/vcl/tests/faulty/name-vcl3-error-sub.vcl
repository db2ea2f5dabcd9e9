# A subroutine of VCL 3.
vcl 4.1;

backend default {
    .host = "127.0.0.1";
}

sub vcl_error {
    return (deliver);
}
