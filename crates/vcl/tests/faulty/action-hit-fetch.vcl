# vcl_hit does not return fetch.
vcl 4.1;

backend default {
    .host = "127.0.0.1";
}

sub vcl_hit {
    return (fetch);
}
