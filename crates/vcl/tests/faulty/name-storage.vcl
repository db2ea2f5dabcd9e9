# An unknown storage.
vcl 4.1;

backend default {
    .host = "127.0.0.1";
}

sub vcl_backend_response {
    set beresp.storage = storage.other;
}
