package startpages

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

const smaps = `00400000-02a00000 r-xp 00001000 fe:00 393230                             /usr/bin/caddy
Size:              38692 kB
Rss:               29220 kB
Anonymous:             0 kB
VmFlags: rd ex mr mw me
02a00000-02c00000 rw-p 02600000 fe:00 393230                             /usr/bin/caddy
Rss:                1516 kB
Anonymous:          1000 kB
7f0000000000-7f0000001000 r--p 00000000 fe:00 1                          /lib/changed.so
Rss:                   4 kB
Anonymous:             4 kB
7f0000000000-7f0000001000 r--p 00000000 fe:00 1                          /lib/swapped.so
Rss:                   4 kB
Anonymous:             0 kB
Swap:                  4 kB
7f0000001000-7f0000002000 r--s 00000000 fe:00 1                          /lib/shared.so
Rss:                   4 kB
Anonymous:             0 kB
7f0000002000-7f0000003000 r-xp 00000000 fe:00 1                          /lib/gone.so (deleted)
Rss:                   4 kB
Anonymous:             0 kB
7ffc00000000-7ffc00001000 r-xp 00000000 00:00 0                          [vdso]
Rss:                   4 kB
Anonymous:             0 kB
`

func TestReadMappings(t *testing.T) {
	found, err := readMappings(strings.NewReader(smaps))
	if err != nil {
		t.Fatal(err)
	}
	var trimmed []string
	for _, m := range found {
		if m.unchanged() {
			trimmed = append(trimmed, m.path)
		}
	}
	if diff := cmp.Diff([]string{"/usr/bin/caddy"}, trimmed); diff != "" || len(found) != 7 {
		t.Errorf("of %d mappings, those that are trimmed differ (-want +got):\n%s", len(found), diff)
	}
	if got := found[0]; got.resident != 29220<<10 || got.start != 0x400000 || got.end != 0x2a00000 {
		t.Errorf("the first mapping is %+v", got)
	}
}

// TestTrim maps a file and reads it. After Trim, its page is out of memory, and its content is still there.
func TestTrim(t *testing.T) {
	path := t.TempDir() + "/file"
	content := strings.Repeat("x", 1<<20)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	mapped, err := unix.Mmap(int(file.Fd()), 0, len(content), unix.PROT_READ, unix.MAP_PRIVATE|unix.MAP_POPULATE)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Munmap(mapped) }()
	before := residentOf(t, path)
	bytes, err := Trim()
	if err != nil {
		t.Fatal(err)
	}
	after := residentOf(t, path)
	if before != int64(len(content)) || after != 0 || bytes < before {
		t.Errorf("of the file %d bytes were in memory, and %d are after %d were trimmed", before, after, bytes)
	}
	if string(mapped) != content {
		t.Error("the content of the file changed")
	}
}

func residentOf(t *testing.T, path string) int64 {
	t.Helper()
	file, err := os.Open("/proc/self/smaps")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	found, err := readMappings(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range found {
		if m.path == path {
			return m.resident
		}
	}
	t.Fatalf("%s is not mapped", path)
	return 0
}

func FuzzReadMappings(f *testing.F) {
	f.Add(smaps)
	f.Add("1-0 r-xp 0 0 0 /x")
	f.Fuzz(func(t *testing.T, text string) {
		found, err := readMappings(strings.NewReader(text))
		for _, m := range found {
			if err == nil && m.end < m.start {
				t.Errorf("a mapping ends before it begins: %+v", m)
			}
		}
	})
}
