# Reckoning with numbers.
vcl 4.1;

backend default {
    .host = "127.0.0.1";
}

sub vcl_recv {
    if (5 % 2 == 1 && 1.5 * 2 > 2.5 && 5 / 2 == 2) {
        return (pass);
    }
}
