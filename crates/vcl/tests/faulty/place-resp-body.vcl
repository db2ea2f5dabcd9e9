# A body is not set in vcl_deliver.
vcl 4.1;

backend default {
    .host = "127.0.0.1";
}

sub vcl_deliver {
    set resp.body = "a";
}
