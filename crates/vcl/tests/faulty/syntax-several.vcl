# Four faults in one file.
vcl 4.1;

backend default {
    .host = "127.0.0.1";
}

sub vcl_recv {
    set req.http.A = "a" "b";
    set req.http.B == "b";
    if (req.http.C = "c") {
        unset req.http.D
    }
    return (hash);
}
