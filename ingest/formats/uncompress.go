package formats

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

const (
	// sniffed is how many bytes of a text are examined to detect its format.
	sniffed = 64 << 10
	// maxWindow is how far back zstd may refer, in bytes of memory.
	maxWindow = 128 << 20
	// maxRatio is how many times its size a compressed file may unfold to, beyond the first freeBytes.
	maxRatio  = 500
	freeBytes = 256 << 20
)

// textReader is a text, whatever its compression was.
type textReader struct {
	*bufio.Reader

	close func()
}

func (t *textReader) skipBOM(start []byte) ([]byte, error) {
	rest, found := bytes.CutPrefix(start, []byte("\xef\xbb\xbf"))
	if !found {
		return start, nil
	}
	_, err := t.Discard(3)
	return rest, err // what was peeked at can be read
}

// uncompressed recognizes gzip and zstd by their first bytes, and Brotli by the name of the file.
func (r *Reader) uncompressed(in io.Reader, name string) (*textReader, error) {
	packed := bufio.NewReaderSize(in, 64<<10)
	magic, err := packed.Peek(4)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	text := &textReader{close: func() {}}
	var plain io.Reader
	switch {
	case bytes.HasPrefix(magic, []byte{0x1f, 0x8b}):
		plain, err = gzip.NewReader(packed)
	case bytes.Equal(magic, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		var unpack *zstd.Decoder
		unpack, err = zstd.NewReader(packed, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow), zstd.WithDecoderLowmem(true))
		if err == nil {
			plain, text.close = unpack, unpack.Close
		}
	case strings.HasSuffix(strings.ToLower(name), ".br"):
		plain = brotli.NewReader(packed)
	default:
		text.Reader = bufio.NewReaderSize(packed, 256<<10)
		return text, nil
	}
	if err != nil {
		return nil, cutOff(err)
	}
	text.Reader = bufio.NewReaderSize(&unfolding{in: plain, r: r}, 256<<10)
	return text, nil
}

// counter counts the bytes that are read.
type counter struct {
	in io.Reader
	n  int64
}

func (c *counter) Read(into []byte) (int, error) {
	n, err := c.in.Read(into)
	c.n += int64(n)
	return n, err // io.Reader: callers compare the error
}

// unfolding reads what compressed data unfolds to, as long as it is in proportion.
type unfolding struct {
	in io.Reader
	r  *Reader
}

func (u *unfolding) Read(into []byte) (int, error) {
	n, err := u.in.Read(into)
	if err := u.r.unfold(int64(n)); err != nil {
		return n, err
	}
	if err != nil && !errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = cutOff(err)
	}
	return n, err // io.Reader: callers compare the error
}

// cutOff explains the error of compressed data that ends too early.
func cutOff(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("the compressed data ends too early, as if the file were cut off: %w", io.ErrUnexpectedEOF)
	}
	return err
}

// fileKind is a kind of file that is read from its end.
type fileKind int

const (
	other fileKind = iota
	zipFile
	parquetFile
)

func kindOfStart(start []byte) fileKind {
	switch {
	case bytes.HasPrefix(start, []byte("PK\x03\x04")), bytes.HasPrefix(start, []byte("PK\x05\x06")):
		return zipFile
	case bytes.HasPrefix(start, []byte("PAR1")):
		return parquetFile
	}
	return other
}

// regular returns an input that can be read at any offset, and reports whether it is one.
func regular(in io.Reader) (file io.ReaderAt, size int64, ok bool) {
	f, ok := in.(*os.File)
	if !ok {
		return nil, 0, false
	}
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return nil, 0, false
	}
	return f, info.Size(), true
}

func kindOf(file io.ReaderAt) (fileKind, error) {
	start := make([]byte, 4)
	n, err := file.ReadAt(start, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return other, err
	}
	return kindOfStart(start[:n]), nil
}

// withoutPath removes the server's path from an error that the author of the import gets.
func withoutPath(err error) error {
	if at, ok := errors.AsType[*os.PathError](err); ok {
		return at.Err
	}
	return err
}

// spool keeps a stream in a file.
func (r *Reader) spool(in io.Reader) (*os.File, int64, error) {
	if r.options.Spool == nil {
		return nil, 0, errors.New("ZIP and Parquet have to come as a file, not as a stream")
	}
	file, err := r.options.Spool()
	if err != nil {
		return nil, 0, fmt.Errorf("keeping the file: %w", withoutPath(err))
	}
	var size int64
	r.closers = append(r.closers, func() error {
		r.spooled -= size
		return errors.Join(file.Close(), os.Remove(file.Name()))
	})
	limited, most := in, r.options.MaxSpool
	if most > 0 {
		limited = io.LimitReader(in, most-r.spooled+1)
	}
	size, err = io.Copy(file, limited)
	r.spooled += size
	switch {
	case err != nil:
		return nil, 0, fmt.Errorf("keeping the file: %w", withoutPath(err))
	case most > 0 && r.spooled > most:
		return nil, 0, fmt.Errorf("the file is larger than %d MiB, which is the most that is kept of one that is read from its end", most>>20)
	}
	return file, size, nil
}
