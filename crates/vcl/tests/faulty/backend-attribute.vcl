# An unknown attribute.
vcl 4.1;

backend default {
    .host = "127.0.0.1";
    .timeout = 5s;
}
