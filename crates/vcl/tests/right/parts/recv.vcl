sub vcl_recv {
    return (hash);
}
