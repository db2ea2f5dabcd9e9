# Every attribute.
vcl 4.1;

backend default {
    .host = "127.0.0.1";
    .port = "8080";
    .host_header = "example.com";
    .connect_timeout = 1s;
    .first_byte_timeout = 1.5m;
    .between_bytes_timeout = 500ms;
    .max_connections = 100;
    .proxy_header = 2;
    .preamble = :SGVsbG8=:;
    .probe = {
        .url = "/health";
        .interval = 2s;
        .timeout = 1s;
        .window = 8;
        .threshold = 3;
        .initial = 2;
        .expected_response = 204;
    }
}
