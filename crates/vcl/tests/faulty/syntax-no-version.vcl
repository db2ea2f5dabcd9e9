# The version is missing.
backend default {
    .host = "127.0.0.1";
}
