# A condition of many lines.
vcl 4.1;

backend default {
    .host = "127.0.0.1";
}

sub vcl_recv {
    if (req.url ~ "^/a"
        || req.url ~ "^/b"
        || req.url ~ "^/c"
        || req.url ~ "^/d") {
        return (pass);
    }
}
