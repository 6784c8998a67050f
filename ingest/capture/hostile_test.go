package capture_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"runtime"
	"strings"
	"testing"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zlib"
	"github.com/klauspost/compress/zstd"

	"github.com/caddy-analytics/caddy-analytics/ingest/capture"
)

// allocated is how many bytes a function allocates.
func allocated(f func()) int {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return int(after.TotalAlloc - before.TotalAlloc)
}

// counted counts what is lent to a request.
type counted struct {
	now, peak, most int
}

var errNone = errors.New("there is none")

func (c *counted) Take(n int) error {
	if c.most > 0 && c.now+n > c.most {
		return errNone
	}
	c.now += n
	c.peak = max(c.peak, c.now)
	return nil
}

func (c *counted) Return(n int) { c.now -= n }

// zeros compresses n times the byte c.
func zeros(tb testing.TB, n int, c byte, open func(io.Writer) io.WriteCloser) []byte {
	tb.Helper()
	var b bytes.Buffer
	w := open(&b)
	block := bytes.Repeat([]byte{c}, 1<<20)
	for range n >> 20 {
		if _, err := w.Write(block); err != nil {
			tb.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		tb.Fatal(err)
	}
	return b.Bytes()
}

func gzipWriter(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) }

// TestHostile sends input that is meant to be expensive. It is refused for what it is, and costs no more than the limits allow.
func TestHostile(t *testing.T) {
	const batch = 4 << 20
	bomb := zeros(t, 64<<20, ' ', gzipWriter)
	lie := bytes.Clone(bomb)
	copy(lie[len(lie)-4:], []byte{0xff, 0xff, 0xff, 0x7f}) // it says that it is larger
	event := func(fields string) []byte { return []byte(one(fields)) }
	tests := []struct {
		name string
		in   capture.Request
		want string
		most int // bytes allocated
	}{
		{"much in a small gzip", capture.Request{Body: bomb}, "payload_too_large -1", 4 * batch},
		{"gzip that says that it is large", capture.Request{Body: lie}, "payload_too_large -1", 4 * batch},
		{"deep lists", capture.Request{Body: event(`,"properties":{"a":` + strings.Repeat("[", 500_000) + strings.Repeat("]", 500_000) + `}`)}, "invalid_event 0", 8 * batch},
		{"deep lists that do not end", capture.Request{Body: []byte(strings.Repeat("[", 4_000_000))}, "parse_error -1", batch},
		{"deep objects that do not end", capture.Request{Body: []byte(strings.Repeat(`{"a":`, 800_000))}, "parse_error -1", batch},
		{"many keys", capture.Request{Body: event(`,"properties":{` + names(80_000) + `}`)}, "invalid_event 0", 8 * batch},
		{"many keys next to a batch", capture.Request{Body: []byte(`{"batch":[],` + names(80_000) + `}`)}, "parse_error -1", 4 * batch},
		{"many objects with the same keys", capture.Request{Body: event(`,"properties":{"a":[` + strings.Repeat(`{"k":1,"k":2},`, 1900) + `0]}`)}, "", 4 * batch},
		{"repeated keys in depth", capture.Request{Body: event(`,"properties":` + strings.Repeat(`{"k":1,"k":`, 60) + `"` + strings.Repeat("x", 900_000) + `"` + strings.Repeat("}", 60))}, "", 80 * 1_000_000},
		{"a long number", capture.Request{Body: event(`,"properties":{"a":` + strings.Repeat("9", 900_000) + `}`)}, "invalid_event 0", 8 * batch},
		{"a long token", capture.Request{Body: []byte(`{"token":"` + strings.Repeat("p", 900_000) + `","event":"e","distinct_id":"d"}`)}, "invalid_api_key -1", 4 * batch},
		{"a long time", capture.Request{Body: event(`,"timestamp":"` + strings.Repeat("(", 900_000) + `"`)}, "", 4 * batch},
		{"escapes", capture.Request{Body: event(`,"properties":{"a":"` + strings.Repeat(`\u2028`, 150_000) + `"}`)}, "", 8 * batch},
		{"line separators", capture.Request{Body: event(`,"properties":{"a":"` + strings.Repeat("\u2028", 300_000) + `"}`)}, "", 8 * batch},
		{"many small events", capture.Request{Body: []byte("[" + strings.Repeat(`{"event":"e","distinct_id":"d"},`, 100_000) + `0]`), Token: token}, "payload_too_large -1", 12 * batch},
		{"a form of many fields", capture.Request{Body: []byte("data=x" + strings.Repeat("&a", 1_000_000)), ContentType: "application/x-www-form-urlencoded"}, "parse_error -1", batch},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.in.Limits = capture.Limits{Batch: batch}
			memory := &counted{}
			tt.in.Memory = memory
			got := ""
			used := allocated(func() {
				if got = lines(&tt.in); strings.HasPrefix(got, "{") {
					got = ""
				}
			})
			if got != tt.want {
				t.Errorf("got %.200s, want %s", got, tt.want)
			}
			if used > tt.most {
				t.Errorf("it takes %d bytes, want at most %d", used, tt.most)
			}
			if memory.peak > 8*batch {
				t.Errorf("it borrows %d bytes at once", memory.peak)
			}
		})
	}
}

// TestHostileLZ decompresses a text whose phrases get longer and longer.
func TestHostileLZ(t *testing.T) {
	const batch = 32 << 10
	body := []byte(compressLZ(strings.Repeat("{", 4*batch)))
	in := capture.Request{Body: body, Compression: "lz64", Limits: capture.Limits{Batch: batch}}
	got := ""
	if used := allocated(func() { got = lines(&in) }); used > 16*batch {
		t.Errorf("%d bytes of input take %d bytes", len(body), used)
	}
	if got != "payload_too_large -1" {
		t.Errorf("got %s", got)
	}
}

// TestHostileV1 inflates input that is meant to be expensive.
func TestHostileV1(t *testing.T) {
	body := zeros(t, 64<<20, ' ', func(w io.Writer) io.WriteCloser { return brotli.NewWriter(w) })
	h, err := capture.ReadV1(headers("Content-Encoding", "br"))
	if err != nil {
		t.Fatal(err)
	}
	used := allocated(func() {
		_, err = capture.DecodeV1(&capture.Request{Body: body, Now: now, Limits: capture.Limits{Batch: 4 << 20}}, h)
	})
	if got := refusal(err); got != "payload_too_large -1" {
		t.Errorf("got %s", got)
	}
	if used > 64<<20 {
		t.Errorf("it takes %d bytes", used)
	}
}

// TestMemory decodes with less and less memory. Memory is taken before it is used, and its own error is returned if there is none.
func TestMemory(t *testing.T) {
	body := typical(500)
	for name, in := range map[string]capture.Request{
		"plain": {Body: body}, "gzip": {Body: gzipped(t, body)}, "lz64": {Body: []byte(compressLZ(string(body))), Compression: "lz64"},
		"form": {Body: append([]byte("data="), bytes.ReplaceAll(bytes.ReplaceAll(body, []byte("%"), []byte("%25")), []byte("&"), []byte("%26"))...), ContentType: "application/x-www-form-urlencoded"},
	} {
		t.Run(name, func(t *testing.T) {
			all := &counted{}
			in.Now, in.Memory = now, all
			batch, err := capture.Decode(&in)
			if err != nil || batch.Events != 500 {
				t.Fatal(err)
			}
			if all.peak < len(batch.Lines) {
				t.Errorf("it borrows %d bytes, and its lines alone have %d", all.peak, len(batch.Lines))
			}
			for most := all.peak - 1; most > 100; most /= 3 {
				few := &counted{most: most}
				in.Memory = few
				if _, err := capture.Decode(&in); !errors.Is(err, errNone) || few.peak > most {
					t.Errorf("with %d bytes: %v", most, err)
				}
			}
		})
	}
}

// TestLargeInflated inflates large input. A text that is too large takes little memory before it is refused, and any other no more than its size.
func TestLargeInflated(t *testing.T) {
	const batch = 8 << 20
	encodings := map[string]func(io.Writer) io.WriteCloser{
		"gzip":    gzipWriter,
		"deflate": func(w io.Writer) io.WriteCloser { return zlib.NewWriter(w) },
		"br":      func(w io.Writer) io.WriteCloser { return brotli.NewWriter(w) },
		"zstd": func(w io.Writer) io.WriteCloser {
			z, err := zstd.NewWriter(w)
			if err != nil {
				panic(err)
			}
			return z
		},
	}
	for name, open := range encodings {
		h, err := capture.ReadV1(headers("Content-Encoding", name))
		if err != nil {
			t.Fatal(err)
		}
		for size, want := range map[int]string{batch: "parse_error -1", batch + 1<<20: "payload_too_large -1", 8 * batch: "payload_too_large -1"} {
			memory := &counted{}
			in := capture.Request{Body: zeros(t, size, ' ', open), Now: now, Limits: capture.Limits{Batch: batch}, Memory: memory}
			_, err = capture.DecodeV1(&in, h)
			if got := refusal(err); got != want {
				t.Errorf("%s of %d bytes: got %s, want %s", name, size, got, want)
			}
			most := 32 << 20 // with the window of a decompressor
			if size == batch {
				most += batch
			}
			if memory.peak > most {
				t.Errorf("%s of %d bytes borrows %d bytes", name, size, memory.peak)
			}
		}
	}
	// An event after many blanks is found in the second pass.
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, _ = z.Write(bytes.Repeat([]byte(" "), 7<<20))
	_, _ = z.Write([]byte(one("")))
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	got, err := capture.Decode(&capture.Request{Body: packed.Bytes(), Now: now, Limits: capture.Limits{Batch: batch}})
	if err != nil || got.Events != 1 {
		t.Errorf("an event after blanks: %v", err)
	}
}
