# The case of else counts.
vcl 4.1;

backend default {
    .host = "127.0.0.1";
}

sub vcl_recv {
    if (req.url == "/") {
        return (pass);
    } ELSE {
        return (hash);
    }
}
