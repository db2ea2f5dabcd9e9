module larder/lab/http2-clients

go 1.19

require golang.org/x/net v0.24.0

require golang.org/x/text v0.14.0 // indirect
