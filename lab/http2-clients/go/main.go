// Command go asks Larder over HTTP/2 with Go's own client, net/http: chosen by ALPN, and, with x/net's, by prior
// knowledge. It prints the checks as the other clients do.
package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"net/url"
	"os"
	"regexp"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/http2"
)

const megabyte = 1 << 20

var good, all int

func check(what string, holds bool, got any) {
	all++
	word := "FAILED"
	if holds {
		good++
		word = "ok    "
	}
	fmt.Printf("%s  %s  [%v]\n", word, what, got)
}

type answer struct {
	*http.Response
	body []byte
	err  error
}

type site struct {
	name   string
	base   string
	client *http.Client
}

func (s site) ask(method, path string, body io.Reader, fields ...string) answer {
	request, err := http.NewRequest(method, s.base+path, body)
	if err != nil {
		return answer{&http.Response{}, nil, err}
	}
	for n := 0; n+1 < len(fields); n += 2 {
		request.Header.Add(fields[n], fields[n+1])
	}
	return s.send(request)
}

func (s site) send(request *http.Request) answer {
	response, err := s.client.Do(request)
	if err != nil {
		return answer{&http.Response{}, nil, err}
	}
	defer response.Body.Close()
	got, err := io.ReadAll(response.Body)
	return answer{response, got, err}
}

func (s site) get(path string, fields ...string) answer { return s.ask("GET", path, nil, fields...) }

func (a answer) whole(length int) bool {
	sum := sha256.Sum256(a.body)
	return a.err == nil && a.StatusCode == 200 && len(a.body) == length &&
		hex.EncodeToString(sum[:]) == a.Header.Get("X-Sha256")
}

var saysHit = regexp.MustCompile(`;\s*hit\b`)

func (a answer) hit(earlier answer) bool {
	stamp := "X-Origin-Request"
	return saysHit.MatchString(a.Header.Get("Cache-Status")) && a.Header.Get(stamp) == earlier.Header.Get(stamp)
}

func (s site) requests() {
	kept := "/kept/10000?" + s.name + "-go"
	first, second := s.get(kept), s.get(kept)
	check(s.name+": is HTTP/2", first.ProtoMajor == 2, first.Proto)
	check(s.name+": a miss, then a hit", first.whole(10000) && second.whole(10000) && second.hit(first), second.err)
	one, two := s.get("/passed/500"), s.get("/passed/500")
	check(s.name+": what is not to be kept is no hit", one.whole(500) && two.whole(500) && !two.hit(one), two.err)
	head := s.ask("HEAD", kept, nil)
	check(s.name+": HEAD has the length and no body", head.ContentLength == 10000 && len(head.body) == 0, head.err)
	same := s.get(kept, "If-None-Match", first.Header.Get("Etag"))
	check(s.name+": 304 for who has it", same.StatusCode == 304 && len(same.body) == 0, same.StatusCode)
	part := s.get(kept, "Range", "bytes=-100")
	check(s.name+": a part of it", part.StatusCode == 206 && bytes.Equal(part.body, first.body[9900:]), part.StatusCode)
	for _, status := range []int{404, 503} {
		got := s.get(fmt.Sprintf("/status/%d", status))
		check(fmt.Sprintf("%s: %d as the origin has it", s.name, status), got.StatusCode == status, got.StatusCode)
	}
	field := s.get("/field/20000")
	check(s.name+": a field of 20 KB comes", len(field.Header.Get("X-Long")) == 20000, field.StatusCode)
	given := s.get("/request", "X-Long", strings.Repeat("l", 20000))
	check(s.name+": a field of 20 KB goes", bytes.Contains(given.body, bytes.Repeat([]byte("l"), 20000)), given.StatusCode)

	var hints []string
	trace := httptrace.WithClientTrace(context.Background(), &httptrace.ClientTrace{
		Got1xxResponse: func(code int, fields textproto.MIMEHeader) error {
			hints = append(hints, fmt.Sprint(code, " ", fields.Get("Link")))
			return nil
		},
	})
	request, _ := http.NewRequestWithContext(trace, "GET", s.base+"/early", nil)
	early := s.send(request)
	check(s.name+": early hints, then the answer",
		len(hints) == 1 && strings.HasPrefix(hints[0], "103 </page/") && string(early.body) == "late", hints)
}

func (s site) bodies() {
	unknown := s.get(fmt.Sprint("/passed-chunked/", 3*megabyte))
	check(s.name+": a body of unknown length", unknown.whole(3*megabyte) && unknown.ContentLength == -1, len(unknown.body))
	long := s.get(fmt.Sprint("/passed/", 50*megabyte))
	check(s.name+": 50 MB arrive whole", long.whole(50*megabyte), len(long.body))
	sent := make([]byte, 5*megabyte)
	if _, err := rand.Read(sent); err != nil {
		panic(err)
	}
	echo := s.ask("POST", "/echo", bytes.NewReader(sent))
	check(s.name+": POST of 5 MB comes back", bytes.Equal(echo.body, sent), len(echo.body))
	// Without a length, as it hides what it reads from.
	unsized := s.ask("POST", "/request", io.MultiReader(bytes.NewReader(sent)))
	var got struct{ Length int }
	err := json.Unmarshal(unsized.body, &got)
	check(s.name+": an upload of unsaid length arrives", err == nil && got.Length == len(sent), got.Length)
	for _, path := range []string{"/cut/", "/cut-chunked/"} {
		cut := s.get(fmt.Sprint(path, megabyte))
		check(s.name+": "+path+" is not taken for whole", cut.StatusCode == 200 && cut.err != nil, cut.err)
	}
}

func (s site) parallel() {
	var wait sync.WaitGroup
	var lock sync.Mutex
	wrong, connections := 0, map[string]bool{}
	for n := range make([]int, 100) {
		wait.Add(1)
		go func(n int) {
			defer wait.Done()
			trace := httptrace.WithClientTrace(context.Background(), &httptrace.ClientTrace{
				GotConn: func(info httptrace.GotConnInfo) {
					lock.Lock()
					connections[info.Conn.LocalAddr().String()] = true
					lock.Unlock()
				},
			})
			path := []string{"/kept/", "/passed/"}[n%2]
			request, _ := http.NewRequestWithContext(trace, "GET", fmt.Sprint(s.base, path, n*700), nil)
			if got := s.send(request); !got.whole(n * 700) {
				lock.Lock()
				wrong++
				lock.Unlock()
			}
		}(n)
	}
	wait.Wait()
	check(s.name+": 100 at once, each whole", wrong == 0, wrong)
	check(s.name+": on one connection", len(connections) == 1, len(connections))
}

func (s site) run() {
	for _, part := range []func(){s.requests, s.bodies, s.parallel} {
		part()
	}
}

func main() {
	secure, plain := os.Getenv("LAB_URL"), os.Getenv("LAB_HTTP")
	root, err := os.ReadFile(os.Getenv("LAB_ROOT"))
	if err != nil {
		panic(err)
	}
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(root)
	url, err := url.Parse(secure)
	if err != nil {
		panic(err)
	}
	dialer := net.Dialer{Timeout: 5 * time.Second}
	local := func(ctx context.Context, network, address string) (net.Conn, error) {
		_, port, _ := net.SplitHostPort(address)
		return dialer.DialContext(ctx, network, net.JoinHostPort("127.0.0.1", port))
	}
	overTLS := &http.Transport{
		DialContext:       local,
		TLSClientConfig:   &tls.Config{RootCAs: trusted, ServerName: url.Hostname()},
		ForceAttemptHTTP2: true,
	}
	known := &http2.Transport{
		AllowHTTP: true,
		DialTLSContext: func(ctx context.Context, network, address string, _ *tls.Config) (net.Conn, error) {
			return local(ctx, network, address)
		},
	}
	site{"TLS", secure, &http.Client{Transport: overTLS, Timeout: 30 * time.Second}}.run()
	site{"h2c", plain, &http.Client{Transport: known, Timeout: 30 * time.Second}}.run()
	fmt.Printf("Go's net/http, over HTTP/2: %d of %d checks hold\n", good, all)
	if good != all {
		os.Exit(1)
	}
}
