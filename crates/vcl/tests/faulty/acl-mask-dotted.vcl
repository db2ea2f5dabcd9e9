# A mask is a number of bits.
vcl 4.1;

backend default {
    .host = "127.0.0.1";
}

acl a {
    "10.0.0.0"/255.0.0.0;
}

sub vcl_recv {
    if (client.ip ~ a) {
        return (pass);
    }
}
