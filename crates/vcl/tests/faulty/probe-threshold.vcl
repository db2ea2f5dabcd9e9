# A threshold above the window.
vcl 4.1;

probe p {
    .window = 5;
    .threshold = 6;
}

backend default {
    .host = "127.0.0.1";
    .probe = p;
}
