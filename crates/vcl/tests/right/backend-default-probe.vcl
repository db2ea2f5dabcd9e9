# A probe for all backends.
vcl 4.1;

probe default {
    .url = "/health";
}

backend b {
    .host = "127.0.0.1";
}
