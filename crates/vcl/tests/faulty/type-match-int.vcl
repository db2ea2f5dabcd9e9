# A number is not matched.
vcl 4.1;

backend default {
    .host = "127.0.0.1";
}

sub vcl_deliver {
    if (resp.status ~ "40[0-9]") {
        unset resp.http.X;
    }
}
