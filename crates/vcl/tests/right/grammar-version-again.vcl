# The version may be said again.
vcl 4.1;
vcl 4.1;
backend b none;
vcl 4.0;
