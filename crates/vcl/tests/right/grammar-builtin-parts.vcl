# Parts of the builtin program may be extended.
vcl 4.1;

backend default {
    .host = "127.0.0.1";
}

sub vcl_req_cookie {
    return;
}

sub vcl_beresp_cookie {
    if (beresp.http.Set-Cookie == "a") {
        return;
    }
}

sub vcl_recv {
    call vcl_req_host;
    call vcl_req_method;
    return (hash);
}
