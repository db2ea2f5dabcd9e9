# A backend that is none has no attributes.
vcl 4.1;

backend default none {
    .host = "127.0.0.1";
}
