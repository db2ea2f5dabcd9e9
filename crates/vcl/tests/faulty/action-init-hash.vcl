# vcl_init does not return hash.
vcl 4.1;

backend default {
    .host = "127.0.0.1";
}

sub vcl_init {
    return (hash);
}
