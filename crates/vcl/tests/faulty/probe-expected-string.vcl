# A status is a number.
vcl 4.1;

probe p {
    .expected_response = "200";
}

backend default {
    .host = "127.0.0.1";
    .probe = p;
}
