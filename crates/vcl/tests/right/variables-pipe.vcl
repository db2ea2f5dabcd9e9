# A pipe.
vcl 4.1;

backend default {
    .host = "127.0.0.1";
}

sub vcl_pipe {
    set bereq.http.connection = req.http.connection;
    set bereq.http.upgrade = req.http.upgrade;
}
