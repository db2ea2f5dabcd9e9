# A host with nothing in it.
vcl 4.1;

backend default {
    .host = "";
}
