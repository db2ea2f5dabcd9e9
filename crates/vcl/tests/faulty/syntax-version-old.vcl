# VCL 3 had no version, and there is none now.
vcl 3.0;

backend default none;
