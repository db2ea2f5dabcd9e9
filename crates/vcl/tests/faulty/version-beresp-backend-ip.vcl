# beresp.backend.ip is of VCL 4.0.
vcl 4.1;

backend default {
    .host = "127.0.0.1";
}

sub vcl_backend_response {
    set beresp.http.X = beresp.backend.ip;
}
