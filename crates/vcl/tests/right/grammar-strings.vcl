# Strings in three forms.
vcl 4.1;

backend default {
    .host = "127.0.0.1";
}

sub vcl_recv {
    set req.http.A = "a\n";
    set req.http.B = {"b "quoted"
        b"};
    set req.http.C = """c "c" c""";
    set req.http.D = "";
}
