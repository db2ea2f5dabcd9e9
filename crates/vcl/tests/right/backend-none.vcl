# A backend that is none.
vcl 4.1;

backend default none;

sub vcl_recv {
    set req.backend_hint = default;
}
