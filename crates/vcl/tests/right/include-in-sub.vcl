# An include within a subroutine.
vcl 4.1;

backend default {
    .host = "127.0.0.1";
}

sub vcl_recv {
    include "./parts/statements.inc";
    return (hash);
}
