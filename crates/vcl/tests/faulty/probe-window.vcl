# A window of more than 64.
vcl 4.1;

probe p {
    .window = 65;
}

backend default {
    .host = "127.0.0.1";
    .probe = p;
}
