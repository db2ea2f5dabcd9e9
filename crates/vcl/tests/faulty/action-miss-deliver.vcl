# vcl_miss does not return deliver.
vcl 4.1;

backend default {
    .host = "127.0.0.1";
}

sub vcl_miss {
    return (deliver);
}
