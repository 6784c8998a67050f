package journal

import (
	"bytes"
	"errors"
	"hash/crc32"
	"io"
	"sync"
	"testing"
	"time"
)

const testSalt = 0x1122334455667788

func record(id uint64, body string) []byte {
	h := header{id: id, bodySize: uint32(len(body)), bodySum: crc32.Checksum([]byte(body), castagnoli)}
	return append(h.append(nil, testSalt), body...)
}

// Whatever is in a segment, a walk over it ends, stays inside, and finds the whole record at the end unless a header before claims its place.
func FuzzScanner(f *testing.F) {
	one := record(1, "body")
	f.Add([]byte{})
	f.Add(one)
	f.Add(one[:headerSize])
	f.Add(one[:len(one)-1])
	f.Add(append(bytes.Repeat([]byte{0}, windowSize-10), one...))
	f.Add(append(bytes.Repeat(prefix(testSalt), windowSize/prefixSize+3), one...))
	f.Add(append([]byte{0x5c}, bytes.Repeat(one, 2000)...))
	f.Fuzz(func(t *testing.T, content []byte) {
		last := record(1<<63, "the last record")
		whole := append(bytes.Clone(content), last...)
		sc := newScanner(bytes.NewReader(whole), testSalt, 0, int64(len(whole)))
		var h header
		end := int64(0)
		for {
			next, at, err := sc.next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil || at < end || sc.off < at+headerSize || sc.off > int64(len(whole)) {
				t.Fatalf("a record at %d to %d of %d, after %d: %v", at, sc.off, len(whole), end, err)
			}
			h, end = next, sc.off
		}
		if h.id != 1<<63 && end <= int64(len(content)) {
			t.Fatalf("the last record was not found after %d", end)
		}
		if sc.off != end {
			t.Fatalf("the end is %d, not %d", sc.off, end)
		}
		if _, err := sc.torn(); err != nil {
			t.Fatal(err)
		}
	})
}

func TestSegmentName(t *testing.T) {
	for name, want := range map[string]bool{
		segmentName(7, testSalt):                        true,
		segmentName(1<<63, 0):                           true,
		"7-1122334455667788.zst":                        false,
		"00000000000000000007-1122334455667788.zst.tmp": false,
		"00000000000000000007-112233445566778.zst":      false,
		"lock": false,
	} {
		first, salt, ok := parseSegmentName(name)
		if ok != want || ok && segmentName(first, salt) != name {
			t.Errorf("%s: %d, %x, %v", name, first, salt, ok)
		}
	}
}

// Entries that arrive while a group is being written are written together.
func TestGroups(t *testing.T) {
	j, err := Open(t.TempDir(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = j.Close() }()
	group := func(n int) bool {
		j.mu.Lock()
		defer j.mu.Unlock()
		return len(j.queue) == n
	}
	var wg sync.WaitGroup
	add := func() {
		wg.Go(func() {
			if err := j.Append(t.Context(), Entry{Data: []byte("a")}); err != nil {
				t.Error(err)
			}
		})
	}
	await := func(done func() bool) {
		for !done() {
			time.Sleep(time.Millisecond)
		}
	}
	j.writing.Lock() // as if a write took long
	add()
	await(func() bool {
		return group(0) && func() bool { j.mu.Lock(); defer j.mu.Unlock(); return j.queued > 0 }()
	})
	for range 20 {
		add()
	}
	await(func() bool { return group(20) })
	next := j.nextGroup()
	j.writing.Unlock()
	if len(next) != 20 {
		t.Errorf("a group of %d, want all 20", len(next))
	}
	err = j.commit(next)
	for _, r := range next {
		r.done <- err
	}
	wg.Wait()
	if s := j.Stats(); s.Entries != 21 {
		t.Errorf("%+v", s)
	}
}

// A group has a limit, but a single entry may exceed it.
func TestLargeGroups(t *testing.T) {
	var j Journal
	for _, size := range []uint32{maxGroup + 1, 10, 10, maxGroup, 10} {
		j.queue = append(j.queue, &request{header: header{bodySize: size}})
	}
	for _, want := range []int{1, 2, 1, 1, 0} {
		if got := len(j.nextGroup()); got != want {
			t.Errorf("a group of %d, want %d", got, want)
		}
	}
}
