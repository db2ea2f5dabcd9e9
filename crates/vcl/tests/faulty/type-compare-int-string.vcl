# A number is not compared with a string.
vcl 4.1;

backend default {
    .host = "127.0.0.1";
}

sub vcl_deliver {
    if (resp.status == "404") {
        unset resp.http.X;
    }
}
