package pagecursor

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"slices"
	"strings"
	"testing"

	"github.com/caddy-analytics/caddy-analytics/cache"
)

// TestForgedCursors changes each bit of a cursor, also with a corrected sum.
func TestForgedCursors(t *testing.T) {
	owner := []byte("owner")
	want := Cursor{Ref: cache.Ref{Hash: 1, Entry: 2}, Offset: 49_000, Limit: 100}
	text := string(want.Append(nil, owner))
	if got, err := Open(text, owner); got != want || err != nil {
		t.Fatalf("Open = %+v, %v", got, err)
	}
	if again := string(want.Append(nil, owner)); again != text {
		t.Errorf("the same page has the cursors %s and %s", text, again)
	}
	all, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	for bit := range 8 * len(all) {
		forged := slices.Clone(all)
		forged[bit/8] ^= 1 << (bit % 8)
		if _, err := Open(base64.RawURLEncoding.EncodeToString(forged), owner); !errors.Is(err, ErrInvalid) {
			t.Errorf("bit %d: %v", bit, err)
		}
		signed := forged[:len(forged)-crc32.Size]
		binary.BigEndian.PutUint32(forged[len(signed):], crc32.ChecksumIEEE(signed))
		if bit/8 >= len(signed) {
			continue
		}
		expired := bit/8 < processBytes // it claims to be from another process
		if _, err := Open(base64.RawURLEncoding.EncodeToString(forged), owner); !errors.Is(err, ErrInvalid) && !expired || expired && !errors.Is(err, ErrExpired) {
			t.Errorf("bit %d and the sum: %v", bit, err)
		}
	}
	for _, other := range []string{"", "owne", "owner2", "\x00owner"} {
		if _, err := Open(text, []byte(other)); !errors.Is(err, ErrInvalid) {
			t.Errorf("for %q: %v", other, err)
		}
	}
}

// FuzzCursor: only the text of a cursor that was issued is accepted.
func FuzzCursor(f *testing.F) {
	owner := []byte("owner")
	good := string(Cursor{Ref: cache.Ref{Hash: 1, Entry: 2}, Offset: 3, Limit: 4}.Append(nil, owner))
	for _, seed := range []string{good, "", good[:79], good + "=", strings.Repeat("-", Length), strings.Repeat("\n", Length)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if c, err := Open(text, owner); (err == nil) != (text == good) {
			t.Errorf("Open(%q) = %+v, %v", text, c, err)
		}
	})
}
