# A timeout has a unit.
vcl 4.1;

backend default {
    .host = "127.0.0.1";
    .connect_timeout = 5;
}
