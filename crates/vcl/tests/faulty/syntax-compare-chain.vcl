# Comparisons do not chain.
vcl 4.1;

backend default {
    .host = "127.0.0.1";
}

sub vcl_recv {
    if (1 < 2 < 3) {
        return (pass);
    }
}
