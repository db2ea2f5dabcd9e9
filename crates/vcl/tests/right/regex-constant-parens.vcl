# A pattern in parentheses or of two strings.
vcl 4.1;

backend default {
    .host = "127.0.0.1";
}

sub vcl_recv {
    if (req.url ~ ("a") || req.url ~ "a" + "b") {
        return (pass);
    }
}
