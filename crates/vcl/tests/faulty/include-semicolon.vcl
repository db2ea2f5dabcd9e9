# The semicolon of an include is missing.
vcl 4.1;

backend default {
    .host = "127.0.0.1";
}

include "./parts/recv.vcl"

sub vcl_hash {
    hash_data(req.url);
}
