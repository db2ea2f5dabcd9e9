# vcl_purge does not return lookup.
vcl 4.1;

backend default {
    .host = "127.0.0.1";
}

sub vcl_purge {
    return (lookup);
}
