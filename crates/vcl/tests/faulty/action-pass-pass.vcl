# vcl_pass does not return pass.
vcl 4.1;

backend default {
    .host = "127.0.0.1";
}

sub vcl_pass {
    return (pass);
}
