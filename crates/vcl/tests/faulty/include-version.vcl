# An included file of a higher version.
vcl 4.0;

backend default none;

include "./parts/version41.vcl";
