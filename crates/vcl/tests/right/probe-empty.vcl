# A probe of nothing but defaults.
vcl 4.1;

probe p { }

backend one {
    .host = "127.0.0.1";
    .probe = p;
}
