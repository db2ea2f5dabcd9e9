# A constant address is one string.
vcl 4.1;

backend default {
    .host = "127.0.0.1";
}

sub vcl_recv {
    if (client.ip == "127.0.0." + "1") {
        return (pass);
    }
}
