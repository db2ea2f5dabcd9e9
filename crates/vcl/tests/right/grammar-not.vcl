# Negation is of a whole comparison.
vcl 4.1;

backend default {
    .host = "127.0.0.1";
}

sub vcl_recv {
    if (!req.url ~ "^/a" && !(req.http.X == "b")) {
        return (pass);
    }
}
