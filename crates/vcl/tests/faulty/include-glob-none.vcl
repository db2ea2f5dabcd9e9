# A pattern that matches nothing.
vcl 4.1;

backend default {
    .host = "127.0.0.1";
}

include +glob "/nonexistent/*.vcl";
