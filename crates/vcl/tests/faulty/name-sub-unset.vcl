# A statement's word as the name of a subroutine.
vcl 4.1;

backend default none;

sub unset {
    set req.http.X = "1";
}

sub vcl_recv {
    call unset;
}
