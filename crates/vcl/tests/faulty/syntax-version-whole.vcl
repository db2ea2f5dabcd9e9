# A version has a dot.
vcl 4;

backend default none;
