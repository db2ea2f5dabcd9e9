# There is no VCL 4.2.
vcl 4.2;

backend default none;
