# In vcl_init there is no client.
vcl 4.1;

backend default {
    .host = "127.0.0.1";
}

sub vcl_init {
    if (client.ip == server.ip) {
        return (ok);
    }
}
