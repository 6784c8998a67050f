package startpages

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Trim drops from memory the pages of files that the process has mapped and only reads, and returns how many bytes they took. The next access maps
// such a page again, usually from the page cache. Trim changes nothing else, so it may be called at any time.
func Trim() (bytes int64, err error) {
	file, err := os.Open("/proc/self/smaps")
	if err != nil {
		return 0, fmt.Errorf("reading the mappings of this process: %w", err)
	}
	defer file.Close()
	found, err := readMappings(file)
	if err != nil {
		return 0, fmt.Errorf("reading the mappings of this process: %w", err)
	}
	for _, m := range found {
		if !m.unchanged() {
			continue
		}
		// For a mapping that is gone by now, the call fails. A new mapping in its place that is not of a file would lose its contents, but nothing in
		// this process unmaps code.
		if err := advise(m); err == nil {
			bytes += m.resident
		}
	}
	return bytes, nil
}

// mapping is a part of the address space.
type mapping struct {
	start, end  uintptr
	permissions string // such as r-xp
	path        string // of the file; empty or in brackets for none
	resident    int64  // bytes in memory
	changed     int64  // bytes that differ from the file, in memory or swapped out
}

// unchanged reports whether everything that the mapping has in memory is also in its file, and will be.
func (m *mapping) unchanged() bool {
	return strings.HasPrefix(m.path, "/") && strings.HasPrefix(m.permissions, "r-") && strings.HasSuffix(m.permissions, "p") && m.changed == 0 && m.resident > 0
}

// readMappings parses the format of /proc/self/smaps.
func readMappings(r io.Reader) ([]mapping, error) {
	var out []mapping
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) == 0 {
			continue
		}
		if name, isField := strings.CutSuffix(fields[0], ":"); isField {
			if len(out) == 0 || len(fields) < 2 {
				continue
			}
			last := &out[len(out)-1]
			switch name {
			case "Rss":
				last.resident = kibibytes(fields[1])
			case "Anonymous", "Swap":
				last.changed += kibibytes(fields[1])
			}
			continue
		}
		m, err := readMapping(fields)
		if err != nil {
			return nil, err
		}
		out = append(out, m)
	}
	return out, lines.Err()
}

// readMapping parses the line that begins a mapping: addresses, permissions, offset, device, inode and path.
func readMapping(fields []string) (mapping, error) {
	from, to, ok := strings.Cut(fields[0], "-")
	start, err := strconv.ParseUint(from, 16, 64)
	end, err2 := strconv.ParseUint(to, 16, 64)
	if !ok || err != nil || err2 != nil || end < start || len(fields) < 5 {
		return mapping{}, fmt.Errorf("%q is not a mapping", strings.Join(fields, " "))
	}
	m := mapping{start: uintptr(start), end: uintptr(end), permissions: fields[1]}
	if len(fields) == 6 { // a path with spaces, or of a file that was deleted, is left alone
		m.path = fields[5]
	}
	return m, nil
}

// kibibytes reads a number of KiB as bytes; 0 if the text is not a number.
func kibibytes(text string) int64 {
	n, err := strconv.ParseInt(text, 10, 52)
	if err != nil {
		return 0
	}
	return n << 10
}

// advise drops a mapping's pages from memory.
func advise(m mapping) error {
	_, _, errno := unix.Syscall(unix.SYS_MADVISE, m.start, m.end-m.start, unix.MADV_DONTNEED)
	if errno != 0 {
		return errno
	}
	return nil
}
