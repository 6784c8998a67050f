//go:build linux || darwin

package embedded

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestBackoff(t *testing.T) {
	var got []time.Duration
	for _, failures := range []int{0, 1, 2, 5, 6, 7, 1000} {
		got = append(got, backoff(failures))
	}
	want := []time.Duration{0, 200 * time.Millisecond, 400 * time.Millisecond, 3200 * time.Millisecond, 6400 * time.Millisecond, 10 * time.Second, 10 * time.Second}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("backoff (-want +got):\n%s", diff)
	}
}

func TestTail(t *testing.T) {
	var last tail
	if lines := last.lines(3); lines != nil {
		t.Errorf("lines of nothing: %q", lines)
	}
	for range 10_000 {
		if _, err := last.Write([]byte("old\n")); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := last.Write([]byte("a\nb\nc\n")); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"old", "a", "b", "c"}, last.lines(4)); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
	if len(last.text) > tailSize {
		t.Errorf("tail keeps %d bytes", len(last.text))
	}
}

func TestNewException(t *testing.T) {
	for _, tt := range []struct {
		text string
		want exceptionError
	}{
		{"Code: 60. DB::Exception: x", exceptionError{60, "Code: 60. DB::Exception: x"}},
		{"", exceptionError{1002, "Code: 1002. DB::Exception: The engine gave no reason. (UNKNOWN_EXCEPTION)"}},
		{"Another query is active", exceptionError{1002, "Code: 1002. DB::Exception: Another query is active. (UNKNOWN_EXCEPTION)"}},
		{"Code: x. y", exceptionError{1002, "Code: 1002. DB::Exception: Code: x. y. (UNKNOWN_EXCEPTION)"}},
	} {
		if got := newException(tt.text); *got != tt.want {
			t.Errorf("newException(%q) = %+v", tt.text, *got)
		}
	}
}
