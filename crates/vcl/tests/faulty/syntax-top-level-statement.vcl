# A statement outside of a subroutine.
vcl 4.1;

backend default {
    .host = "127.0.0.1";
}

set req.http.X = "a";
