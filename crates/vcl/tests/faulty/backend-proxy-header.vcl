# PROXY has versions 1 and 2.
vcl 4.1;

backend default {
    .host = "127.0.0.1";
    .proxy_header = 3;
}
