# vcl_fini does not return fail.
vcl 4.1;

backend default {
    .host = "127.0.0.1";
}

sub vcl_fini {
    return (fail);
}
