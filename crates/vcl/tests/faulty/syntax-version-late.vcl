# An import stands before the version.
import std;
vcl 4.1;

backend default none;
