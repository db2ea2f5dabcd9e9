# Words of statements as names.
vcl 4.1;

backend default {
    .host = "127.0.0.1";
}

sub remove {
    return;
}

sub error {
    call remove;
}

sub vcl_recv {
    call error;
}
