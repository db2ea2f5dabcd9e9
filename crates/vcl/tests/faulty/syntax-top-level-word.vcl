# An unknown declaration.
vcl 4.1;

backend default {
    .host = "127.0.0.1";
}

subroutine vcl_recv {
    return (hash);
}
