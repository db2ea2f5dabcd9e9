package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

var good, all int

func check(what string, holds bool, got any) {
	all++
	word := "FAILED"
	if holds {
		good++
		word = "ok    "
	}
	fmt.Printf("%s  %s  [%.160s]\n", word, what, fmt.Sprint(got))
}

// ask checks Larder at `plain` and `secure`; each has a path's beginning for each way to the servers.
func ask() error {
	pem, err := os.ReadFile(os.Getenv("LAB_ROOT"))
	if err != nil {
		return err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	for _, way := range []struct {
		name, target, authority string
		credentials             credentials.TransportCredentials
	}{
		{"h2c to h2c", os.Getenv("LAB_HTTP"), "h2c.localhost", insecure.NewCredentials()},
		{"TLS to TLS", os.Getenv("LAB_HTTPS"), "grpc.localhost", credentials.NewTLS(&tls.Config{RootCAs: roots})},
		{"h2c to what ALPN says", os.Getenv("LAB_HTTP"), "auto.localhost", insecure.NewCredentials()},
	} {
		connection, err := grpc.NewClient(way.target, grpc.WithTransportCredentials(way.credentials),
			grpc.WithAuthority(way.authority), grpc.WithDefaultCallOptions(grpc.ForceCodec(plain{})))
		if err != nil {
			return err
		}
		fmt.Println("#", way.name)
		calls(connection)
		streams(connection)
		failures(connection)
		many(connection)
		connection.Close()
	}
	nobody()
	return nil
}

func calls(connection *grpc.ClientConn) {
	ctx := metadata.AppendToOutgoingContext(soon(), "lab-asks", "for this")
	var header, trailer metadata.MD
	got, err := unary(ctx, connection, "Unary", []byte("hello"), grpc.Header(&header), grpc.Trailer(&trailer))
	check("a call is answered", err == nil && string(got) == "hello", err)
	check("the head's metadata come", first(header, "lab-asked") == "for this", header)
	check("its trailers come with the answer", first(trailer, "lab-trailer") == "for this", trailer)
	large := bytes.Repeat([]byte("0123456789abcdef"), 1<<16)
	got, err = unary(soon(), connection, "Unary", large, grpc.MaxCallRecvMsgSize(1<<24))
	check("a megabyte there and back", err == nil && bytes.Equal(got, large), err)
	got, err = unary(soon(), connection, "Unary", nil)
	check("an empty message", err == nil && len(got) == 0, err)
}

func streams(connection *grpc.ClientConn) {
	upload, err := connection.NewStream(soon(), &grpc.StreamDesc{ClientStreams: true}, "/lab.Echo/Collect")
	if err == nil {
		for range 200 {
			message := make([]byte, 5000)
			if err = upload.SendMsg(&message); err != nil {
				break
			}
		}
		err = closed(upload, err)
	}
	got := received(upload, &err)
	check("a client's stream of 200 messages", err == nil && string(got) == "1000000", err)

	down, err := connection.NewStream(soon(), &grpc.StreamDesc{ServerStreams: true}, "/lab.Echo/Count")
	message, count := []byte("500"), 0
	if err == nil {
		err = closed(down, down.SendMsg(&message))
	}
	for err == nil {
		if err = down.RecvMsg(&message); err == nil {
			count++
		}
	}
	check("a server's stream of 500 messages", err == io.EOF && count == 500, fmt.Sprint(count, " ", err))

	talk, err := connection.NewStream(soon(), &grpc.StreamDesc{ServerStreams: true, ClientStreams: true},
		"/lab.Echo/Talk")
	if err == nil {
		_, err = talk.Header()
	}
	check("the answer's head comes before the first message", err == nil, err)
	rounds := 0
	for ; err == nil && rounds < 300; rounds++ {
		said := fmt.Appendf(nil, "round %d %s", rounds, strings.Repeat("x", rounds*10))
		if err = talk.SendMsg(&said); err == io.EOF {
			err = nil
			received(talk, &err)
			fmt.Printf("# the dialogue ended: %v\n", err)
		} else if err == nil {
			if heard := received(talk, &err); !bytes.Equal(heard, said) {
				fmt.Printf("# %.40q is not %.40q (%v)\n", heard, said, err)
				break
			}
		}
	}
	check("each message of a dialogue is answered before the next", err == nil && rounds == 300, rounds)
	err = closed(talk, err)
	received(talk, &err)
	check("a dialogue ends with its client's end", err == io.EOF, err)
}

func failures(connection *grpc.ClientConn) {
	_, err := unary(soon(), connection, "Fail", nil)
	is := status.Convert(err)
	check("a failed call keeps status and text", is.Code() == codes.FailedPrecondition && is.Message() == "not today", err)
	_, err = unary(soon(), connection, "Missing", nil)
	check("an unknown method", status.Code(err) == codes.Unimplemented, err)
	upload, err := connection.NewStream(soon(), &grpc.StreamDesc{ClientStreams: true}, "/lab.Echo/Early")
	for n := 0; err == nil && n < 10_000; n++ {
		message := make([]byte, 10_000)
		err = upload.SendMsg(&message)
	}
	if err == io.EOF {
		err = nil
		received(upload, &err)
	}
	is = status.Convert(err)
	check("an answer in the middle of an upload ends it", is.Code() == codes.ResourceExhausted &&
		is.Message() == "no more, thanks: 100 %", err)
	ctx, stop := context.WithTimeout(context.Background(), 300*time.Millisecond)
	defer stop()
	_, err = unary(ctx, connection, "Slow", nil)
	check("a deadline ends a call", status.Code(err) == codes.DeadlineExceeded, err)
}

// sums counts the ends of calls.
type sums struct{ answered, gaveUp, wrong atomic.Int64 }

func (sums *sums) String() string {
	return fmt.Sprint(sums.answered.Load(), " answered, ", sums.gaveUp.Load(), " given up, ", sums.wrong.Load(), " wrong")
}

// makeCalls makes calls, `workers` at once and `each` by every one of them, spread over the connections. If `givesUp`,
// one in eight is given up after some milliseconds.
func makeCalls(connections []*grpc.ClientConn, workers, each int, givesUp bool) *sums {
	sums := &sums{}
	var group sync.WaitGroup
	for worker := range workers {
		connection := connections[worker%len(connections)]
		group.Go(func() {
			for n := range each {
				if givesUp && n%8 == 3 {
					ctx, stop := context.WithTimeout(context.Background(), time.Duration(rand.IntN(8)+1)*time.Millisecond)
					_, err := unary(ctx, connection, "Slow", nil)
					stop()
					if status.Code(err) == codes.DeadlineExceeded {
						sums.gaveUp.Add(1)
						continue
					}
					sums.wrong.Add(1)
					continue
				}
				said := fmt.Appendf(nil, "%d/%d", worker, n)
				got, err := unary(soon(), connection, "Unary", said)
				if err != nil || !bytes.Equal(got, said) {
					fmt.Fprintf(os.Stderr, "# %.40q is not %.40q (%.99s)\n", got, said, fmt.Sprint(err))
					sums.wrong.Add(1)
				} else {
					sums.answered.Add(1)
				}
			}
		})
	}
	group.Wait()
	return sums
}

// many makes 2,000 calls, 50 at once, of which one in eight is given up.
func many(connection *grpc.ClientConn) {
	sums := makeCalls([]*grpc.ClientConn{connection}, 50, 40, true)
	good := sums.answered.Load() == 1750 && sums.gaveUp.Load() == 250
	check("2,000 calls beside each other, of which some are given up", good, sums)
}

// load makes `each` calls by 50 workers over four connections to `address`, and prints a line of JSON about them. `mix` is
// "given-up" if one in eight is given up.
func load(address, each, mix string) error {
	number, err := strconv.Atoi(each)
	if err != nil {
		return err
	}
	var connections []*grpc.ClientConn
	for range 4 {
		connection, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()),
			grpc.WithAuthority("grpc.localhost"), grpc.WithDefaultCallOptions(grpc.ForceCodec(plain{})))
		if err != nil {
			return err
		}
		defer connection.Close()
		connections = append(connections, connection)
	}
	began := time.Now()
	sums := makeCalls(connections, 50, number, mix == "given-up")
	return json.NewEncoder(os.Stdout).Encode(map[string]any{
		"answered": sums.answered.Load(), "given_up": sums.gaveUp.Load(), "wrong": sums.wrong.Load(),
		"seconds": time.Since(began).Seconds(),
	})
}

// nobody asks for a server that is not there, and one of HTTP/1.1.
func nobody() {
	fmt.Println("# Larder's own answers")
	for authority, code := range map[string]codes.Code{
		"down.localhost":    codes.Unavailable,
		"unknown.localhost": codes.Unimplemented,
	} {
		connection, err := grpc.NewClient(os.Getenv("LAB_HTTP"), grpc.WithTransportCredentials(insecure.NewCredentials()),
			grpc.WithAuthority(authority), grpc.WithDefaultCallOptions(grpc.ForceCodec(plain{})))
		if err == nil {
			_, err = unary(soon(), connection, "Unary", nil)
			connection.Close()
		}
		check(authority, status.Code(err) == code, err)
	}
}

func unary(ctx context.Context, connection *grpc.ClientConn, method string, message []byte, options ...grpc.CallOption) ([]byte, error) {
	var got []byte
	err := connection.Invoke(ctx, "/lab.Echo/"+method, &message, &got, options...)
	return got, err
}

// soon is a deadline that only a hang exceeds.
func soon() context.Context {
	ctx, stop := context.WithTimeout(context.Background(), 20*time.Second)
	context.AfterFunc(ctx, stop)
	return ctx
}

func closed(stream grpc.ClientStream, err error) error {
	if err != nil {
		return err
	}
	return stream.CloseSend()
}

func received(stream grpc.ClientStream, err *error) []byte {
	var message []byte
	if *err == nil {
		*err = stream.RecvMsg(&message)
	}
	return message
}
