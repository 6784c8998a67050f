package main

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/quic-go/quic-go/http3"

	"github.com/caddy-analytics/caddy-analytics/tests/harness"
)

// http3Load returns a load over HTTP/3, one request at a time on each connection. Debian packages no program for that.
func http3Load(trust *tls.Config) func(folder string, r *rival, shape loadShape) (measured, error) {
	return func(_ string, r *rival, shape loadShape) (measured, error) {
		var mu sync.Mutex
		var took []time.Duration
		var failures []error
		var clients sync.WaitGroup
		until := time.Now().Add(time.Duration(shape.seconds) * time.Second)
		for range shape.connections {
			clients.Go(func() {
				mine, err := http3Requests(trust, r, until)
				mu.Lock()
				defer mu.Unlock()
				took = append(took, mine...)
				failures = append(failures, err)
			})
		}
		clients.Wait()
		if err := errors.Join(failures...); err != nil {
			return measured{}, fmt.Errorf("%s: %w", r.name, err)
		}
		return summary(took, time.Duration(shape.seconds)*time.Second)
	}
}

// http3Requests sends requests on its own connection until a time, and returns how long each took. The first, which connects, does not count. As in the
// other loads, nothing is compressed: respond does not compress, and decompressing a response takes the client longer than receiving it.
func http3Requests(trust *tls.Config, r *rival, until time.Time) (took []time.Duration, err error) {
	transport := &http3.Transport{TLSClientConfig: trust.Clone(), DisableCompression: true}
	defer func() { err = errors.Join(err, transport.Close()) }()
	for first := true; first || time.Now().Before(until); first = false {
		req, err := http.NewRequest(http.MethodPost, r.url, strings.NewReader(runBody))
		if err != nil {
			return nil, err
		}
		for name, value := range r.header {
			req.Header.Set(name, value)
		}
		sent := time.Now()
		resp, err := transport.RoundTrip(req)
		if err != nil {
			return nil, err
		}
		_, err = io.Copy(io.Discard, resp.Body)
		err = errors.Join(err, resp.Body.Close())
		if err := checked("running", harness.Answer{Status: resp.StatusCode}, err, http.StatusOK); err != nil {
			return nil, err
		}
		if !first {
			took = append(took, time.Since(sent))
		}
	}
	return took, nil
}
