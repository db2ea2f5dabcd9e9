# A subroutine that returns what its caller cannot.
vcl 4.1;

backend default {
    .host = "127.0.0.1";
}

sub mine {
    return (pass);
}

sub vcl_deliver {
    call mine;
}
