# The version ends with a semicolon.
vcl 4.1

backend default none;
