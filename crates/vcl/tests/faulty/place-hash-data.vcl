# hash_data() is for vcl_hash.
vcl 4.1;

backend default {
    .host = "127.0.0.1";
}

sub vcl_recv {
    hash_data(req.url);
}
