# Two subroutines that call each other.
vcl 4.1;

backend default {
    .host = "127.0.0.1";
}

sub one {
    call two;
}

sub two {
    call one;
}

sub vcl_recv {
    call one;
}
