# In vcl_init there is no request.
vcl 4.1;

backend default {
    .host = "127.0.0.1";
}

sub vcl_init {
    if (req.url) {
        return (fail);
    }
}
