# A subroutine that nothing calls.
vcl 4.1;

backend default {
    .host = "127.0.0.1";
}

sub mine {
    return;
}
