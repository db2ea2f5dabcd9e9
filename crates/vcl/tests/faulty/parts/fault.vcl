sub vcl_recv {
    set req.http.X;
}
