# A remainder is of whole numbers.
vcl 4.1;

backend default {
    .host = "127.0.0.1";
}

sub vcl_recv {
    if (5 % 2.0 == 1) {
        return (pass);
    }
}
