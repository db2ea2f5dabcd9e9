# Lines may end as on Windows.
vcl 4.1;

backend b none;

sub vcl_recv {
    # a comment
    return (hash);
}
