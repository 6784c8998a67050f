package capture

import (
	"errors"
	"io"
	"os"
	"testing"
	"testing/synctest"
	"time"
)

// slowBody returns some bytes after each pause.
type slowBody struct {
	left, bytes int
	pause       time.Duration
}

func (s *slowBody) Read(into []byte) (int, error) {
	if s.left == 0 {
		return 0, io.EOF
	}
	time.Sleep(s.pause)
	n := min(s.bytes, s.left, len(into))
	s.left -= n
	return n, nil
}

// TestSlowBodies: a body that trickles is given up; one that is slow but steady is not.
func TestSlowBodies(t *testing.T) {
	for _, tt := range []struct {
		name    string
		body    slowBody
		givenUp bool
		longest time.Duration
	}{
		{"at once", slowBody{1 << 20, 1 << 20, 0}, false, 0},
		{"slow, and all of it in time", slowBody{3000, 100, time.Second}, false, 30 * time.Second},
		{"slow and large", slowBody{1 << 20, 16 << 10, time.Second}, false, 65 * time.Second},
		{"a byte now and then", slowBody{1 << 20, 1, 50 * time.Second}, true, 50 * time.Second},
		{"many bytes, and then fewer and fewer", slowBody{1 << 20, 1 << 10, time.Second}, true, 35 * time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				memory := NewMemory(DefaultMemory)
				lent := memory.lend(t.Context())
				began, size := time.Now(), tt.body.left
				body, err := lent.readAll(&tt.body, size, 20<<20)
				if errors.Is(err, os.ErrDeadlineExceeded) != tt.givenUp || !tt.givenUp && (err != nil || len(body) != size) {
					t.Errorf("%d of %d bytes: %v", len(body), size, err)
				}
				if took := time.Since(began); took > tt.longest {
					t.Errorf("it took %s", took)
				}
				lent.giveBack()
				if memory.Lent() != 0 {
					t.Errorf("%d bytes are still lent", memory.Lent())
				}
			})
		})
	}
}
