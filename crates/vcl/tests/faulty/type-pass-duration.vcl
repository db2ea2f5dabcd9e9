# pass takes a duration in vcl_backend_response only as one.
vcl 4.1;

backend default {
    .host = "127.0.0.1";
}

sub vcl_backend_response {
    return (pass(120));
}
