# Cookies.
vcl 4.1;

import cookie;

backend default {
    .host = "127.0.0.1";
}

sub vcl_recv {
    cookie.parse(req.http.Cookie);
    cookie.keep("a,b");
    cookie.filter_re("^_");
    if (cookie.isset("a")) {
        set req.http.X = cookie.get("a") + cookie.get_string();
    }
}
