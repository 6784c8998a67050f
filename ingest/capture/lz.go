package capture

import (
	"unicode/utf16"
	"unicode/utf8"
)

// decompressLZ undoes lz-string's compressToBase64.
//
// The format is LZ78 over UTF-16: a stream of codes, least significant bit first, whose width grows with the dictionary. Codes 0 and 1 introduce a new
// character of 8 or 16 bits, 2 is the end, and each other code is a phrase. A phrase is always a part of the text before it, so the dictionary stores positions
// instead of texts.
func (d *decoder) decompressLZ(raw []byte) ([]byte, error) {
	z := lzReader{in: raw, most: d.limits.Batch, memory: d.Memory}
	defer z.free()
	if err := z.read(); err != nil {
		return nil, d.parseError(err)
	}
	b := buffer{memory: d.Memory, most: d.limits.Batch}
	if err := b.reserve(sizeInUTF8(z.out)); err != nil {
		return nil, d.parseError(err)
	}
	return appendUTF16(b.b, z.out), nil
}

// sizeInUTF8 is how many bytes appendUTF16 appends.
func sizeInUTF8(units []uint16) (size int) {
	for i, unit := range units {
		switch {
		case unit < 0x80:
			size++
		case unit < 0x800:
			size += 2
		case unit>>10 == 0xdc00>>10 && i > 0 && units[i-1]>>10 == 0xd800>>10: // the second half of a pair
			size++
		default:
			size += 3
		}
	}
	return size
}

// appendUTF16 appends UTF-16 as UTF-8. A lone surrogate becomes U+FFFD.
func appendUTF16(dst []byte, units []uint16) []byte {
	for i := 0; i < len(units); i++ {
		c := rune(units[i])
		if utf16.IsSurrogate(c) && i+1 < len(units) {
			if pair := utf16.DecodeRune(c, rune(units[i+1])); pair != utf8.RuneError {
				c = pair
				i++
			}
		}
		dst = utf8.AppendRune(dst, c)
	}
	return dst
}

// lzReader reads the codes of a stream.
type lzReader struct {
	in     []byte
	at     int  // the next character
	value  byte // what is left of the last character
	bits   int  // how many bits of it are left
	out    []uint16
	most   int // units of out
	memory Memory
	taken  int

	phrases []phrase
	width   int // bits of a code
	room    int // how many more phrases there may be before codes get wider
}

// phrase is a part of the output.
type phrase struct{ start, length int32 }

const (
	lzByte = iota // a character of 8 bits follows
	lzUnit        // one of 16
	lzEnd
	firstPhrase
)

const maxCodeWidth = 30

var errNotLZ = refuse(ParseError, "The payload is declared as compressed by lz-string, but it is not.")

func (z *lzReader) free() { z.memory.Return(z.taken) }

// take takes memory for buffers that grow.
func (z *lzReader) take(bytes int) error {
	if err := z.memory.Take(bytes); err != nil {
		return &memoryError{err}
	}
	z.taken += bytes
	return nil
}

func (z *lzReader) read() error {
	z.phrases, z.width, z.room = make([]phrase, firstPhrase, 256), 2, 0
	code, err := z.code(2)
	if err != nil {
		return err
	}
	if code == lzEnd {
		return nil
	}
	if code > lzEnd {
		return errNotLZ
	}
	if err := z.literal(code); err != nil {
		return err
	}
	last := z.phrases[firstPhrase]
	if err := z.emit(last); err != nil {
		return err
	}
	z.width, z.room = 3, 4
	for {
		code, err := z.code(z.width)
		switch {
		case err != nil:
			return err
		case code == lzEnd:
			return nil
		case code < lzEnd:
			if err := z.literal(code); err != nil {
				return err
			}
			code = len(z.phrases) - 1
			z.countPhrase()
		}
		next := phrase{last.start, last.length + 1} // the last phrase, and the first unit of this one
		entry := next
		switch {
		case code < len(z.phrases):
			entry = z.phrases[code]
		case code > len(z.phrases):
			return errNotLZ
		}
		if err := z.emit(entry); err != nil {
			return err
		}
		last = phrase{int32(len(z.out)) - entry.length, entry.length} //nolint:gosec // the maximum fits
		if err := z.define(next); err != nil {
			return err
		}
		z.countPhrase()
	}
}

// countPhrase counts a phrase, and widens the codes when there are more phrases than they can name.
func (z *lzReader) countPhrase() {
	if z.room--; z.room == 0 {
		z.room = 1 << z.width
		z.width++
	}
}

// literal defines the phrase of a new character, which comes next.
func (z *lzReader) literal(kind int) error {
	width := 8
	if kind == lzUnit {
		width = 16
	}
	unit, err := z.code(width)
	if err != nil {
		return err
	}
	if err := z.ensure(1); err != nil {
		return err
	}
	at := len(z.out)
	z.out = append(z.out, uint16(unit))[:at]             //nolint:gosec // it has 16 bits
	return z.define(phrase{start: int32(at), length: 1}) //nolint:gosec // the maximum fits
}

func (z *lzReader) define(p phrase) error {
	if len(z.phrases) == cap(z.phrases) {
		if err := z.take(8 * cap(z.phrases)); err != nil {
			return err
		}
		z.phrases = append(make([]phrase, 0, 2*cap(z.phrases)), z.phrases...)
	}
	z.phrases = append(z.phrases, p)
	return nil
}

// emit writes a phrase, which may end with the first unit that it writes itself.
func (z *lzReader) emit(p phrase) error {
	if err := z.ensure(int(p.length)); err != nil {
		return err
	}
	for i := p.start; i < p.start+p.length; i++ {
		z.out = append(z.out, z.out[:cap(z.out)][i])
	}
	return nil
}

// ensure makes room for n more units.
func (z *lzReader) ensure(n int) error {
	need := len(z.out) + n
	switch {
	case need > z.most:
		b := buffer{most: z.most}
		return b.tooLarge()
	case need <= cap(z.out):
		return nil
	}
	size := min(max(need, 2*cap(z.out), 4*len(z.in)), z.most)
	if err := z.take(2 * (size - cap(z.out))); err != nil {
		return err
	}
	z.out = append(make([]uint16, 0, size), z.out...)
	return nil
}

// code reads bits, the least significant first.
func (z *lzReader) code(width int) (int, error) {
	if width > maxCodeWidth {
		return 0, errNotLZ
	}
	code := 0
	for bit := range width {
		if z.bits == 0 {
			if z.at >= len(z.in) {
				return 0, errNotLZ
			}
			value := lzAlphabet[z.in[z.at]]
			if value < 0 {
				return 0, errNotLZ
			}
			z.value, z.bits = byte(value), 6
			z.at++
		}
		z.bits--
		code |= int(z.value>>z.bits&1) << bit
	}
	return code, nil
}

// lzAlphabet is the value of each character, -1 for invalid ones. A blank was a plus sign before the form was read.
var lzAlphabet = func() (values [256]int8) {
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
	for c := range values {
		values[c] = -1
	}
	for value, c := range []byte(alphabet) {
		values[c] = int8(value)
	}
	values[' '], values['='] = values['+'], 0
	return values
}()
