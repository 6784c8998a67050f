package capture

import (
	"bytes"
	"io"
	"sync"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/zlib"
	"github.com/klauspost/compress/zstd"
)

// The values of Content-Encoding that the newest route accepts.
const (
	gzipEncoding    = "gzip"
	deflateEncoding = "deflate"
	brotliEncoding  = "br"
	zstdEncoding    = "zstd"
)

// maxWindow is the largest window of a decompressor, in bytes.
const maxWindow = 16 << 20

// inflated undoes the Content-Encoding of a body.
func (d *decoder) inflated(raw []byte, encoding string) ([]byte, error) {
	switch encoding {
	case gzipEncoding:
		return d.gunzip(raw)
	case deflateEncoding:
		return d.deflated(raw)
	case brotliEncoding:
		return d.windowed(func() ([]byte, error) {
			return d.inflate(4*len(raw), func() (io.Reader, error) { return brotli.NewReader(bytes.NewReader(raw)), nil })
		})
	case zstdEncoding:
		return d.windowed(func() ([]byte, error) { return d.unzstd(raw) })
	}
	if len(raw) > d.limits.Batch {
		b := buffer{most: d.limits.Batch}
		return nil, b.tooLarge()
	}
	return raw, nil
}

// windowed accounts for the window of a decompressor while it runs.
func (d *decoder) windowed(inflate func() ([]byte, error)) ([]byte, error) {
	if err := d.Memory.Take(maxWindow); err != nil {
		return nil, err
	}
	defer d.Memory.Return(maxWindow)
	return inflate()
}

// deflated reads deflate with a zlib header, as HTTP defines it, or without, as some clients send it.
func (d *decoder) deflated(raw []byte) ([]byte, error) {
	return d.inflate(4*len(raw), func() (io.Reader, error) {
		if in, err := zlib.NewReader(bytes.NewReader(raw)); err == nil {
			return in, nil
		}
		return flate.NewReader(bytes.NewReader(raw)), nil
	})
}

var zstdDecoders = sync.Pool{New: func() any {
	in, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxWindow))
	if err != nil {
		panic("BUG: the options of zstd: " + err.Error())
	}
	return in
}}

func (d *decoder) unzstd(raw []byte) ([]byte, error) {
	in, _ := zstdDecoders.Get().(*zstd.Decoder)
	defer zstdDecoders.Put(in)
	text, err := d.inflate(4*len(raw), func() (io.Reader, error) {
		if err := in.Reset(bytes.NewReader(raw)); err != nil {
			return nil, refuse(ParseError, "The payload is declared as zstd, but it is not.")
		}
		return struct{ io.Reader }{in}, nil
	})
	_ = in.Reset(nil) // drops its reference to the body
	return text, err
}
