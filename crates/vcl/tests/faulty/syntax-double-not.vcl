# Two exclamation marks.
vcl 4.1;

backend default {
    .host = "127.0.0.1";
}

sub vcl_recv {
    if (!!req.http.X) {
        return (pass);
    }
}
