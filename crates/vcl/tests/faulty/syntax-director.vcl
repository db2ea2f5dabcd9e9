# Directors of VCL 3.
vcl 4.1;

backend default {
    .host = "127.0.0.1";
}

director d round-robin {
    { .backend = default; }
}
