vcl 4.1;
