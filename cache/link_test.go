package cache_test

import (
	"runtime"
	"testing"

	"github.com/caddy-analytics/caddy-analytics/cache"
)

// TestLink: a link refers to its value while somebody else keeps the value.
func TestLink(t *testing.T) {
	var l cache.Link[[1 << 10]byte]
	if l.Follow() != nil {
		t.Error("a link that was never set leads somewhere")
	}
	value := new([1 << 10]byte)
	l.Set(value)
	runtime.GC()
	if l.Follow() != value {
		t.Error("the link does not lead to its value")
	}
	runtime.KeepAlive(value)
	runtime.GC()
	if l.Follow() != nil {
		t.Error("the link keeps a value that nobody else keeps")
	}
}

func BenchmarkLink(b *testing.B) {
	var l cache.Link[[1 << 10]byte]
	value := new([1 << 10]byte)
	l.Set(value)
	b.ReportAllocs()
	for b.Loop() {
		if l.Follow() == nil {
			b.Fatal("the value is gone")
		}
	}
	runtime.KeepAlive(value)
}
