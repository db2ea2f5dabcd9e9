# The smallest program.
vcl 4.1;
backend b none;
