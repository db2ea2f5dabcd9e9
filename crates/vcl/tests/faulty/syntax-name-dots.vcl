# A subroutine whose name has dots.
vcl 4.1;

backend default {
    .host = "127.0.0.1";
}

sub my.recv {
    return;
}

sub vcl_recv {
    call my.recv;
}
