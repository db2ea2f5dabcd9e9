package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"strconv"
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// cancelled counts calls that ended because their client had left.
var cancelled atomic.Int64

// serve answers all methods of /lab.Echo/ on `address`, over TLS if there is a certificate.
func serve(address, certificate, key string) error {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	options := []grpc.ServerOption{
		grpc.ForceServerCodec(plain{}),
		grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error {
			method, _ := grpc.MethodFromServerStream(stream)
			return answer(method, stream)
		}),
	}
	if certificate != "" {
		secure, err := credentials.NewServerTLSFromFile(certificate, key)
		if err != nil {
			return err
		}
		options = append(options, grpc.Creds(secure))
	}
	server := grpc.NewServer(options...)
	healthpb.RegisterHealthServer(server, health.NewServer())
	return server.Serve(listener)
}

func answer(method string, stream grpc.ServerStream) error {
	fields, _ := metadata.FromIncomingContext(stream.Context())
	if err := stream.SetHeader(metadata.Pairs("lab-asked", first(fields, "lab-asks"))); err != nil {
		return err
	}
	stream.SetTrailer(metadata.Pairs("lab-trailer", first(fields, "lab-asks")))
	switch method {
	case "/lab.Echo/Unary":
		var message []byte
		if err := stream.RecvMsg(&message); err != nil {
			return err
		}
		return stream.SendMsg(&message)
	case "/lab.Echo/Collect":
		sum, err := drain(stream)
		if err != nil {
			return err
		}
		return send(stream, strconv.Itoa(sum))
	case "/lab.Echo/Count":
		var message []byte
		if err := stream.RecvMsg(&message); err != nil {
			return err
		}
		most, _ := strconv.Atoi(string(message))
		for n := range most {
			if err := send(stream, fmt.Sprint("message ", n)); err != nil {
				return err
			}
		}
		return nil
	case "/lab.Echo/Talk":
		// The head comes before the first message.
		if err := stream.SendHeader(nil); err != nil {
			return err
		}
		for {
			var message []byte
			if err := stream.RecvMsg(&message); err == io.EOF {
				return nil
			} else if err != nil {
				return err
			}
			if err := stream.SendMsg(&message); err != nil {
				return err
			}
		}
	case "/lab.Echo/Early":
		// An answer without waiting for the request's end.
		return status.Error(codes.ResourceExhausted, "no more, thanks: 100 %")
	case "/lab.Echo/Slow":
		<-stream.Context().Done()
		if stream.Context().Err() == context.Canceled {
			cancelled.Add(1)
		}
		return stream.Context().Err()
	case "/lab.Echo/Cancelled":
		return send(stream, fmt.Sprint(cancelled.Load()))
	case "/lab.Echo/Fail":
		return status.Error(codes.FailedPrecondition, "not today")
	}
	return status.Error(codes.Unimplemented, method)
}

func drain(stream grpc.ServerStream) (int, error) {
	sum := 0
	for {
		var message []byte
		switch err := stream.RecvMsg(&message); err {
		case nil:
			sum += len(message)
		case io.EOF:
			return sum, nil
		default:
			return 0, err
		}
	}
}

func send(stream grpc.ServerStream, text string) error {
	message := []byte(text)
	return stream.SendMsg(&message)
}

func first(fields metadata.MD, name string) string {
	if values := fields.Get(name); len(values) > 0 {
		return values[0]
	}
	return ""
}
