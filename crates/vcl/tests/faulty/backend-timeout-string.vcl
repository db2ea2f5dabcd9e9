# A timeout stands without quotes.
vcl 4.1;

backend default {
    .host = "127.0.0.1";
    .first_byte_timeout = "5s";
}
