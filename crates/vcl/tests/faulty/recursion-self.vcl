# A subroutine that calls itself.
vcl 4.1;

backend default {
    .host = "127.0.0.1";
}

sub mine {
    call mine;
}

sub vcl_recv {
    call mine;
}
