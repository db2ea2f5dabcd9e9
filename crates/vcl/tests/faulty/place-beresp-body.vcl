# A body is not set in vcl_backend_response.
vcl 4.1;

backend default {
    .host = "127.0.0.1";
}

sub vcl_backend_response {
    set beresp.body = "a";
}
