# vcl_backend_error does not return pass.
vcl 4.1;

backend default {
    .host = "127.0.0.1";
}

sub vcl_backend_error {
    return (pass);
}
