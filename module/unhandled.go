package module

import (
	"bufio"
	"io"
	"net"
	"net/http"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

// serveUnhandled answers requests that the next handlers leave unanswered: an empty 200 would tell a client with a wrong path that all is well.
func (h *Handler) serveUnhandled(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	watched := &watchedWriter{ResponseWriterWrapper: &caddyhttp.ResponseWriterWrapper{ResponseWriter: w}}
	if err := next.ServeHTTP(watched, r); err != nil || watched.used {
		return err
	}
	if rt := h.started(w, r); rt != nil {
		rt.api.ServeHTTP(w, r) // the API has no route for it
	}
	return nil
}

// watchedWriter records whether anything was answered.
type watchedWriter struct {
	*caddyhttp.ResponseWriterWrapper

	used bool
}

// WriteHeader records an answer, unless it is only informational.
func (w *watchedWriter) WriteHeader(status int) {
	w.used = w.used || status >= http.StatusOK || status == http.StatusSwitchingProtocols
	w.ResponseWriterWrapper.WriteHeader(status)
}

func (w *watchedWriter) Write(p []byte) (int, error) {
	w.used = true
	return w.ResponseWriterWrapper.Write(p)
}

// ReadFrom is used by io.Copy.
func (w *watchedWriter) ReadFrom(r io.Reader) (int64, error) {
	w.used = true
	return w.ResponseWriterWrapper.ReadFrom(r)
}

// FlushError sends the header.
func (w *watchedWriter) FlushError() error {
	w.used = true
	return http.NewResponseController(w.ResponseWriter).Flush()
}

// Hijack takes over the connection.
func (w *watchedWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	w.used = true
	return http.NewResponseController(w.ResponseWriter).Hijack()
}
