// Package pagecursor writes and reads the cursors that page through one snapshot of a result, as given in an answer's next_cursor. A cursor grants no
// access: a request with one needs a key or token that may run the endpoint, like any other run.
package pagecursor

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"hash/crc32"
	"sync"

	"github.com/caddy-analytics/caddy-analytics/cache"
)

var (
	// ErrInvalid refuses a text that is not a cursor, or belongs to another owner. It does not tell which.
	ErrInvalid = errors.New("no cursor of this owner")
	// ErrExpired refuses a cursor of another process: from before a restart, or from another server.
	ErrExpired = errors.New("a cursor of another process")
)

// Cursor names a page of one snapshot.
type Cursor struct {
	Ref           cache.Ref // the snapshot
	Offset, Limit int       // rows
}

// A cursor's text is base64 for URLs. Its bytes are
//
//	process 8 | tag 16 | body 32 | sum 4
//
// where the body is encrypted, so that callers neither build cursors nor learn what the cache calls its entries, and the tag signs the
// body and its owner. The same page has the same cursor, as it has the same entity tag. The sum tells a text that was cut or mistyped
// from one of another process.
const (
	processBytes = 8
	tagBytes     = aes.BlockSize
	bodyBytes    = 32
	allBytes     = processBytes + tagBytes + bodyBytes + crc32.Size
	// Length is how long the text of a cursor is, in bytes.
	Length = allBytes / 3 * 4
)

// sealer writes and reads the cursors of this process. What they name is only in its memory, so its keys are, too.
type sealer struct {
	process [processBytes]byte
	sign    [sha256.Size]byte
	block   cipher.Block
}

var ours = sync.OnceValue(func() *sealer {
	s := new(sealer)
	var secret [aes.BlockSize]byte
	for _, part := range [][]byte{s.process[:], s.sign[:], secret[:]} {
		_, _ = rand.Read(part) // never fails
	}
	var err error
	if s.block, err = aes.NewCipher(secret[:]); err != nil {
		panic("BUG: a key for AES: " + err.Error())
	}
	return s
})

// Process returns the name of this process, with which its cursors begin.
func Process() string { return hex.EncodeToString(ours().process[:]) }

// ProcessOf returns the name of the process that made a cursor. It returns false for a text that is not a cursor of any process.
func ProcessOf(text string) (string, bool) {
	if len(text) != Length {
		return "", false
	}
	all, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || len(all) != allBytes {
		return "", false
	}
	return hex.EncodeToString(all[:processBytes]), true
}

// tag signs a body. It is also the start value of the body's encryption: different bodies always have different ones.
func (s *sealer) tag(body, owner []byte) []byte {
	mac := hmac.New(sha256.New, s.sign[:])
	mac.Write(body) // of fixed length, so that body and owner can't be confused
	mac.Write(owner)
	return mac.Sum(nil)[:tagBytes]
}

// Append appends the text of a cursor: 80 letters, digits, - and _. Only the owner, which is identified by any bytes, can read it.
func (c Cursor) Append(dst, owner []byte) []byte {
	s := ours()
	body := make([]byte, 0, bodyBytes)
	for _, word := range [...]uint64{c.Ref.Hash, c.Ref.Entry, uint64(c.Offset), uint64(c.Limit)} { //nolint:gosec // neither is negative
		body = binary.BigEndian.AppendUint64(body, word)
	}
	tag := s.tag(body, owner)
	cipher.NewCTR(s.block, tag).XORKeyStream(body, body)
	all := append(make([]byte, 0, allBytes), s.process[:]...)
	all = append(append(all, tag...), body...)
	all = binary.BigEndian.AppendUint32(all, crc32.ChecksumIEEE(all))
	return base64.RawURLEncoding.AppendEncode(dst, all)
}

// Open reads the text of a cursor. The errors are [ErrInvalid] and [ErrExpired].
func Open(text string, owner []byte) (Cursor, error) {
	s := ours()
	if len(text) != Length { // also excludes line breaks, which the decoder would skip
		return Cursor{}, ErrInvalid
	}
	all, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || len(all) != allBytes {
		return Cursor{}, ErrInvalid
	}
	rest, sum := all[:allBytes-crc32.Size], all[allBytes-crc32.Size:]
	if crc32.ChecksumIEEE(rest) != binary.BigEndian.Uint32(sum) {
		return Cursor{}, ErrInvalid
	}
	process, rest := rest[:processBytes], rest[processBytes:]
	if !bytes.Equal(process, s.process[:]) {
		return Cursor{}, ErrExpired // from before a restart, or from another server
	}
	tag, body := rest[:tagBytes], rest[tagBytes:]
	cipher.NewCTR(s.block, tag).XORKeyStream(body, body)
	if !hmac.Equal(tag, s.tag(body, owner)) {
		return Cursor{}, ErrInvalid
	}
	var words [bodyBytes / 8]uint64
	for i := range words {
		words[i] = binary.BigEndian.Uint64(body[8*i:])
	}
	return Cursor{
		Ref:    cache.Ref{Hash: words[0], Entry: words[1]},
		Offset: int(words[2]), Limit: int(words[3]), //nolint:gosec // as Append wrote them
	}, nil
}
