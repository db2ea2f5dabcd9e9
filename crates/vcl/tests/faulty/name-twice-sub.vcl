# Two own subroutines of one name.
vcl 4.1;

backend default {
    .host = "127.0.0.1";
}

sub mine {
    return;
}

sub mine {
    return;
}

sub vcl_recv {
    call mine;
}
