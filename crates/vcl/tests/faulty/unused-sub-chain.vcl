# Subroutines that only each other call.
vcl 4.1;

backend default {
    .host = "127.0.0.1";
}

sub one {
    call two;
}

sub two {
    return;
}
