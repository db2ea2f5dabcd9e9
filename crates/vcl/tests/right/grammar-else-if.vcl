# Four ways to write else if.
vcl 4.1;

backend default {
    .host = "127.0.0.1";
}

sub vcl_recv {
    if (req.url == "/a") {
        set req.http.X = "a";
    } else if (req.url == "/b") {
        set req.http.X = "b";
    } elseif (req.url == "/c") {
        set req.http.X = "c";
    } elsif (req.url == "/d") {
        set req.http.X = "d";
    } elif (req.url == "/e") {
        set req.http.X = "e";
    } else {
        unset req.http.X;
    }
}
