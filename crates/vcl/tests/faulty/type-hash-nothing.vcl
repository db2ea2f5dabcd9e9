# hash_data() needs something.
vcl 4.1;

backend default {
    .host = "127.0.0.1";
}

sub vcl_hash {
    hash_data();
}
