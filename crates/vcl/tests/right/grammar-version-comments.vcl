# Comments stand anywhere.
/* one */ vcl /* two */ 4.1 // three
; # four
backend /**/ b none;
