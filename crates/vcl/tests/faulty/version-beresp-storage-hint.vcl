# beresp.storage_hint is of VCL 4.0.
vcl 4.1;

backend default {
    .host = "127.0.0.1";
}

sub vcl_backend_response {
    set beresp.storage_hint = "s0";
}
