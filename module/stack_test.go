package module

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

// TestStackOfHit: a hit uses little stack. Over HTTP/2 and HTTP/3 each request's stack starts small and is copied to one of twice the size when it is
// full; Caddy has used more than 5 of 8 KB when it calls the handler.
func TestStackOfHit(t *testing.T) {
	most := 2250
	if info, ok := debug.ReadBuildInfo(); ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"}) {
		most += 1000 // for the race detector
	}
	w := newWorld(t)
	e := w.NewEndpoint(t, "mine", "select n from events")
	run, err := w.Asks(http.MethodPost, "/").PlanRun(e, []byte(`{"limit": 100}`))
	if err != nil {
		t.Fatal(err)
	}
	w.Remember(t, run, time.Now(), "[1]")
	next := caddyhttp.HandlerFunc(func(http.ResponseWriter, *http.Request) error { return context.Canceled })
	answer := &discard{header: http.Header{}}
	body := new(deepBody)
	r := httptest.NewRequest(http.MethodPost, "/api/projects/1/endpoints/mine/run", io.NopCloser(body))
	r.Header.Set("Authorization", "Bearer "+w.Secret)
	sent := r.Body
	hit := func() {
		body.Reset(`{"limit": 100}`)
		r.Body = sent
		clear(answer.header)
		if err := w.ServeHTTP(answer, r, next); err != nil || answer.status != http.StatusOK {
			t.Errorf("answers %d, %v", answer.status, err)
		}
	}
	hit() // renders the page, and writes all headers once
	if !strings.Contains(answer.header.Get("Cache-Status"), "hit") {
		t.Fatalf("it is no hit: %v", answer.header)
	}
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // the collector moves stacks too
	if took := roomOnStack(func() {}) - roomOnStack(hit); took > most {
		t.Errorf("a hit takes %d bytes of the stack, want at most %d", took, most)
	}
}

// deepBody is a body that takes about as much of the stack as one that Caddy reads over HTTP/2, with a deadline for each part.
type deepBody struct{ strings.Reader }

func (b *deepBody) Read(into []byte) (int, error) {
	var frames [1100]byte
	n, err := b.Reader.Read(frames[:min(len(into), len(frames))])
	copy(into, frames[:n])
	return n, err
}

// roomOnStack returns how many bytes of a stack that has grown to 8 KB may be in use before calling f moves the stack. A goroutine that is preempted
// takes some of its stack for that, and may move it where f alone would not: only what moves it each time counts.
func roomOnStack(f func()) (room int) {
	for levels := 0; ; levels++ {
		used, unmoved := 0, false
		for try := 0; try < 10 && !unmoved; try++ {
			used, unmoved = callOnStack(levels, f)
		}
		if !unmoved {
			return room
		}
		room = used
	}
}

// callOnStack calls f below so many levels of a stack that has grown to 8 KB. It returns how many bytes were in use before, and reports whether the
// stack stayed where it was.
func callOnStack(levels int, f func()) (used int, unmoved bool) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		descend(200, func() {})
		var top byte
		before := uintptr(unsafe.Pointer(&top))
		descend(levels, func() {
			var here byte
			used = int(before - uintptr(unsafe.Pointer(&here)))
			f()
		})
		unmoved = uintptr(unsafe.Pointer(&top)) == before
	}()
	<-done
	return used, unmoved
}

// descend calls f after so many calls of itself, each of which takes a little of the stack.
//
//go:noinline
func descend(levels int, f func()) {
	if levels == 0 {
		f()
		return
	}
	descend(levels-1, f)
}
