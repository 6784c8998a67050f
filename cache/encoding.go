package cache

import (
	"fmt"
	"strings"
	"sync"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/caddy-analytics/caddy-analytics/internal/accept"
)

// Encoding is a content coding of a body.
type Encoding uint8

// The content codings that bodies are kept in.
const (
	Identity Encoding = iota // uncompressed
	Gzip
	Zstd
	encodings int = iota
)

// String returns the coding's name in the Content-Encoding header.
func (e Encoding) String() string {
	switch e {
	case Identity:
		return "identity"
	case Gzip:
		return "gzip"
	case Zstd:
		return "zstd"
	}
	return fmt.Sprintf("encoding %d", uint8(e))
}

// Negotiate returns the encoding that an Accept-Encoding header prefers. Among equals it prefers zstd to
// gzip and gzip to identity. If the header is empty or accepts no supported encoding, it returns Identity.
// It ignores malformed elements. It does not allocate.
func Negotiate(header string) Encoding {
	const unsaid = -1
	weights := [encodings]int{unsaid, unsaid, unsaid}
	others := unsaid
	for coding, weight, rest := accept.NextEncoding(header); coding != ""; coding, weight, rest = accept.NextEncoding(rest) {
		switch {
		case coding == "*":
			others = weight
		case strings.EqualFold(coding, "zstd"):
			weights[Zstd] = weight
		case strings.EqualFold(coding, "gzip"), strings.EqualFold(coding, "x-gzip"):
			weights[Gzip] = weight
		case strings.EqualFold(coding, "identity"):
			weights[Identity] = weight
		}
	}
	best, bestWeight := Identity, max(0, weights[Identity])
	for _, encoding := range [...]Encoding{Gzip, Zstd} {
		weight := weights[encoding]
		if weight == unsaid {
			weight = max(0, others)
		}
		if weight > 0 && weight >= bestWeight {
			best, bestWeight = encoding, weight
		}
	}
	return best
}

func trimSpace(s string) string { return strings.Trim(s, " \t") }

// MatchETag reports whether an If-None-Match header, a list of tags or "*", matches the entity tag by weak
// comparison. It does not allocate.
func MatchETag(header, etag string) bool {
	if etag == "" {
		return false
	}
	if trimSpace(header) == "*" {
		return true
	}
	etag = strings.TrimPrefix(etag, "W/")
	for rest := strings.TrimLeft(header, " \t,"); rest != ""; rest = strings.TrimLeft(rest, " \t,") {
		rest = strings.TrimPrefix(rest, "W/")
		if rest == "" || rest[0] != '"' {
			return false
		}
		end := strings.IndexByte(rest[1:], '"')
		if end < 0 {
			return false
		}
		if rest[:end+2] == etag {
			return true
		}
		rest = rest[end+2:]
	}
	return false
}

// newZstd returns an encoder for any number of goroutines. Its window is small, because bodies are
// seldom large and browsers must allocate it.
func newZstd() (*zstd.Encoder, error) {
	return zstd.NewWriter(nil, zstd.WithWindowSize(1<<20))
}

func compressZstd(encoder *zstd.Encoder, plain []byte) []byte {
	return fit(encoder.EncodeAll(plain, make([]byte, 0, len(plain)/4)))
}

var gzipPool = sync.Pool{New: func() any { return gzip.NewWriter(nil) }}

func compressGzip(plain []byte) []byte {
	w := gzipPool.Get().(*gzip.Writer)
	defer gzipPool.Put(w)
	out := buffer(make([]byte, 0, len(plain)/4))
	w.Reset(&out)
	if _, err := w.Write(plain); err != nil {
		panic("BUG: compressing into memory: " + err.Error())
	}
	if err := w.Close(); err != nil {
		panic("BUG: compressing into memory: " + err.Error())
	}
	return fit(out)
}

// buffer is a writer whose writes never fail.
type buffer []byte

// Write appends p.
func (b *buffer) Write(p []byte) (int, error) {
	*b = append(*b, p...)
	return len(p), nil
}
