# Subroutines may be called before they are there.
vcl 4.1;

backend default {
    .host = "127.0.0.1";
}

sub vcl_recv {
    call later;
}

sub later {
    call last;
}

sub last {
    return;
}
