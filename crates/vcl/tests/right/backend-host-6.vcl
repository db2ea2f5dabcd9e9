# An address in brackets.
vcl 4.1;

backend default {
    .host = "[::1]:8080";
}
