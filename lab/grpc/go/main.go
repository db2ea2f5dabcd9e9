// Command grpc is Go's gRPC on both sides of Larder: `grpc serve ADDRESS [CERTIFICATE KEY]` is a server, `grpc ask` a
// client that prints checks, and `grpc load ADDRESS CALLS [given-up]` one that makes 50 times so many calls.
package main

import (
	"fmt"
	"os"
	"slices"
)

// plain is a codec of messages that are bytes.
type plain struct{}

func (plain) Marshal(message any) ([]byte, error) { return *message.(*[]byte), nil }
func (plain) Unmarshal(bytes []byte, message any) error {
	*message.(*[]byte) = slices.Clone(bytes)
	return nil
}
func (plain) Name() string { return "plain" }

func main() {
	arguments := append(os.Args[1:], "", "", "", "")
	var err error
	switch arguments[0] {
	case "serve":
		err = serve(arguments[1], arguments[2], arguments[3])
	case "ask":
		err = ask()
		fmt.Printf("%d of %d checks hold\n", good, all)
		if err == nil && good != all {
			os.Exit(1)
		}
	case "load":
		err = load(arguments[1], arguments[2], arguments[3])
	default:
		err = fmt.Errorf("serve, ask or load?")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
