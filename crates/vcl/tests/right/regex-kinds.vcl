# Patterns of all kinds.
vcl 4.1;

backend default {
    .host = "127.0.0.1";
}

sub vcl_recv {
    if (req.url ~ "(?i)\.(png|jpe?g)(\?.*)?$" || req.url ~ "^/(?!admin)" || req.url ~ "(a)\1" || req.url ~ "(?<=/)b" || req.url ~ "[[:alpha:]]+" || req.url ~ {"^/"x""} || req.url ~ "\d{2,}(?:a|b)*?\b") {
        return (pass);
    }
}
