# A port stands in quotes.
vcl 4.1;

backend default {
    .host = "127.0.0.1";
    .port = 80;
}
