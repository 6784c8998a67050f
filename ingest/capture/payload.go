package capture

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"io"
	"mime"
	"net/url"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/klauspost/compress/gzip"
)

// Text decodes a payload to its JSON, as Decode does.
func Text(r *Request) ([]byte, error) { return newDecoder(r).payload() }

// payload finds the payload of a request and decodes it: contract capture.md, section 3.
func (d *decoder) payload() ([]byte, error) {
	raw, inQuery := d.Body, false
	if d.Data != "" {
		raw, inQuery = []byte(d.Data), true
	}
	if len(raw) == 0 {
		return nil, refuse(EmptyPayload, "The request has no payload.")
	}
	var err error
	said := compressionOf(d.Compression)
	if !isForm(raw) {
		if raw, err = d.unwrap(raw, inQuery, said); err != nil {
			return nil, err
		}
	}
	if !inQuery && isFormType(d.ContentType, raw) {
		data, compression, err := d.form(raw)
		if err != nil {
			return nil, err
		}
		if said == none {
			said = compressionOf(compression)
		}
		if raw, err = d.unwrap(data, true, said); err != nil {
			return nil, err
		}
	}
	if said == none {
		said = compressionOf(d.ContentEncoding)
	}
	text, err := d.uncompressed(raw, said)
	if err != nil {
		return nil, err
	}
	if text, err = d.unwrap(text, false, none); err != nil {
		return nil, err
	}
	if len(text) > d.limits.Batch {
		b := buffer{most: d.limits.Batch}
		return nil, b.tooLarge()
	}
	return text, checkUTF8(text)
}

func checkUTF8(text []byte) error {
	if !utf8.Valid(text) {
		return refuse(ParseError, "The payload is not valid UTF-8.")
	}
	return nil
}

// compression is how a payload is compressed.
type compression uint8

const (
	none compression = iota // also for base64, which is recognized by its characters
	gzipped
	lz64
)

func compressionOf(name string) compression {
	switch strings.ToLower(strings.TrimSpace(name)) {
	case "gzip", "gzip-js":
		return gzipped
	case "lz64", "lz-string":
		return lz64
	}
	return none
}

// unwrap decodes a text that is base64 as a whole. In a text from a URL, blanks stand for plus signs. The base64 of lz-string is its own, and stays.
func (d *decoder) unwrap(text []byte, fromURL bool, said compression) ([]byte, error) {
	if said == lz64 || len(text) == 0 || len(text)%4 != 0 {
		return text, nil
	}
	blanks := false
	for _, c := range text {
		switch {
		case c >= 'A' && c <= 'Z', c >= 'a' && c <= 'z', c >= '0' && c <= '9', c == '+', c == '/', c == '=':
		case c == ' ' && fromURL:
			blanks = true
		default:
			return text, nil
		}
	}
	if blanks {
		text = bytes.ReplaceAll(text, []byte(" "), []byte("+"))
	}
	size := base64.StdEncoding.DecodedLen(len(text))
	if err := d.Memory.Take(size); err != nil {
		return nil, err
	}
	decoded := make([]byte, size)
	n, err := base64.StdEncoding.Decode(decoded, text)
	if err != nil {
		d.Memory.Return(size)
		return text, nil //nolint:nilerr // it only looked like base64
	}
	return decoded[:n], nil
}

// isFormType reports whether a payload is a form, by its type. PostHog knows only the type without parameters. With a charset, which older clients send JSON
// with, the payload also has to look like a form.
func isFormType(header string, raw []byte) bool {
	if header == "" || !strings.Contains(strings.ToLower(header), "urlencoded") {
		return false
	}
	typ, params, err := mime.ParseMediaType(header)
	return err == nil && typ == "application/x-www-form-urlencoded" && (len(params) == 0 || beginsWithName(raw))
}

// beginsWithName reports whether a payload begins with a letter or an underscore, as the fields of a form do, and neither JSON nor gzip.
func beginsWithName(raw []byte) bool {
	return len(raw) > 0 && (raw[0] == '_' || 'a' <= raw[0]|0x20 && raw[0]|0x20 <= 'z')
}

// isForm reports whether a payload looks like a form that holds another payload.
func isForm(raw []byte) bool {
	head := raw[:min(len(raw), 128)]
	for _, field := range [...]string{"data=", "_=", "ip=", "compression="} {
		if bytes.HasPrefix(head, []byte(field)) || bytes.Contains(head, []byte("&"+field)) {
			return true
		}
	}
	return false
}

// form takes the payload out of a form.
func (d *decoder) form(raw []byte) (data []byte, compression string, err error) {
	found := false
	for field := range bytes.SplitSeq(raw, []byte("&")) {
		name, value, _ := bytes.Cut(field, []byte("="))
		switch string(name) {
		case "data":
			text, err := d.unescape(value)
			if err != nil {
				return nil, "", err
			}
			if data = text; len(data) > 0 {
				found = true
			}
		case "compression":
			compression, _ = url.QueryUnescape(string(value[:min(len(value), 32)]))
		case "token", "api_key":
			if token, err := url.QueryUnescape(string(value[:min(len(value), 4*maxToken)])); err == nil && d.Token == "" {
				d.Token = token
			}
		}
	}
	if !found {
		return nil, "", refuse(ParseError,
			"The form has no field data. Send JSON with Content-Type: application/json, or a form with the JSON in its field data.")
	}
	return data, compression, nil
}

// unescape undoes the escapes of a form's field.
func (d *decoder) unescape(value []byte) ([]byte, error) {
	b := buffer{memory: d.Memory, most: d.limits.Batch}
	if err := b.reserve(len(value)); err != nil {
		return nil, d.parseError(err)
	}
	for i := 0; i < len(value); i++ {
		switch c := value[i]; c {
		case '+':
			b.b = append(b.b, ' ')
		case '%':
			if i+2 >= len(value) {
				return nil, refuse(ParseError, "The field data of the form ends within an escape.")
			}
			high, low := hexDigit(value[i+1]), hexDigit(value[i+2])
			if high < 0 || low < 0 {
				return nil, refuse(ParseError, "The field data of the form has the escape %q, which is not one.", value[i:i+3])
			}
			b.b = append(b.b, byte(high<<4|low)) //nolint:gosec // two digits are a byte
			i += 2
		default:
			b.b = append(b.b, c)
		}
	}
	return b.b, nil
}

func hexDigit(c byte) int {
	switch {
	case c >= '0' && c <= '9':
		return int(c - '0')
	case c >= 'a' && c <= 'f':
		return int(c-'a') + 10
	case c >= 'A' && c <= 'F':
		return int(c-'A') + 10
	}
	return -1
}

// uncompressed undoes the compression of a payload. Gzip is recognized by its first bytes.
func (d *decoder) uncompressed(raw []byte, said compression) ([]byte, error) {
	if said == gzipped || bytes.HasPrefix(raw, []byte{0x1f, 0x8b, 8}) {
		return d.gunzip(raw)
	}
	if said != lz64 {
		return raw, nil
	}
	text, err := d.decompressLZ(raw)
	if refused, ok := errors.AsType[*RefusalError](err); ok && refused.Code == ParseError {
		inner, err := d.unwrap(raw, true, none)
		if err != nil {
			return nil, err
		}
		if len(inner) != len(raw) { // some clients encode it in base64 once more
			return d.decompressLZ(inner)
		}
	}
	return text, err
}

var gunzippers = sync.Pool{New: func() any { return new(gzip.Reader) }}

// gunzip reads the first member of a gzip stream, as PostHog does.
func (d *decoder) gunzip(raw []byte) ([]byte, error) {
	in, _ := gunzippers.Get().(*gzip.Reader)
	defer gunzippers.Put(in)
	return d.inflate(expected(raw), func() (io.Reader, error) {
		if err := in.Reset(bytes.NewReader(raw)); err != nil {
			return nil, refuse(ParseError, "The payload is declared as gzip, but it is not.")
		}
		in.Multistream(false)
		return in, nil
	})
}

// expected is the size that a gzip stream claims to have, as far as that is believable.
func expected(raw []byte) int {
	const likely = 32 // times its compressed size
	if len(raw) < 4 {
		return 0
	}
	size := int(binary.LittleEndian.Uint32(raw[len(raw)-4:])) + 1
	return min(size, likely*len(raw))
}

// inflate reads the whole output of the decompressor that open returns.
func (d *decoder) inflate(expect int, open func() (io.Reader, error)) ([]byte, error) {
	text, err := d.inflateMeasured(expect, open)
	if err == nil {
		return text, nil
	}
	if _, ok := errors.AsType[*RefusalError](err); ok {
		return nil, err
	}
	if refused, ok := errors.AsType[*memoryError](err); ok {
		return nil, refused.cause
	}
	return nil, refuse(ParseError, "The payload cannot be decompressed: it is damaged, or cut off.")
}

// inflateMeasured decompresses a large text twice, the first time only to measure it: then a text that is too large takes little memory, and others take no
// more than their size.
func (d *decoder) inflateMeasured(expect int, open func() (io.Reader, error)) ([]byte, error) {
	in, err := open()
	if err != nil {
		return nil, err
	}
	b := buffer{memory: d.Memory, most: min(d.limits.Batch, largeBuffer)}
	err = b.readFrom(in, expect)
	if _, isLarge := errors.AsType[*RefusalError](err); !isLarge {
		return b.b, err
	}
	b.release()
	b.most = d.limits.Batch
	if in, err = open(); err != nil {
		return nil, err
	}
	size, err := io.Copy(io.Discard, io.LimitReader(in, int64(b.most)+1))
	if err != nil {
		return nil, err
	}
	if size > int64(b.most) {
		return nil, b.tooLarge()
	}
	if in, err = open(); err != nil {
		return nil, err
	}
	err = b.readFrom(in, int(size))
	return b.b, err
}
