# Connections are whole.
vcl 4.1;

backend default {
    .host = "127.0.0.1";
    .max_connections = 1.5;
}
