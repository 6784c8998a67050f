package rows

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"
)

// AppendCSVHeader appends the names of columns as the first line of a CSV file.
func AppendCSVHeader(dst []byte, columns []string) []byte {
	for i, name := range columns {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendField(dst, []byte(name))
	}
	return append(dst, '\r', '\n')
}

// AppendCSV appends a row, a JSON array with columns cells, as a line of CSV (RFC 4180). NULL becomes an empty field and an empty string a quoted
// one; lists and objects stay JSON.
func AppendCSV(dst, row []byte, columns int) ([]byte, error) {
	cells := scanner{row: row}
	for i := range columns {
		cell, ok := cells.next()
		if !ok {
			return dst, ErrMalformed
		}
		if i > 0 {
			dst = append(dst, ',')
		}
		switch cell[0] {
		case '"':
			text, err := unquote(cell)
			if err != nil {
				return dst, err
			}
			dst = appendField(dst, text)
		case '[', '{':
			dst = appendField(dst, cell)
		case 'n':
		default:
			dst = append(dst, cell...)
		}
	}
	if columns > 0 && !cells.ended() {
		return dst, ErrMalformed
	}
	return append(dst, '\r', '\n'), nil
}

// appendField appends a text, quoted if it could be misread otherwise.
func appendField(dst, text []byte) []byte {
	if len(text) > 0 && !bytes.ContainsAny(text, ",\"\r\n") && text[0] != ' ' && text[len(text)-1] != ' ' {
		return append(dst, text...)
	}
	dst = append(dst, '"')
	for {
		quote := bytes.IndexByte(text, '"')
		if quote < 0 {
			break
		}
		dst = append(append(dst, text[:quote]...), '"', '"')
		text = text[quote+1:]
	}
	return append(append(dst, text...), '"')
}

// unquote returns the text of a JSON string.
func unquote(cell []byte) ([]byte, error) {
	inner := cell[1 : len(cell)-1]
	if bytes.IndexByte(inner, '\\') < 0 && utf8.Valid(inner) {
		return inner, nil
	}
	var text string
	if err := json.Unmarshal(cell, &text); err != nil {
		return nil, ErrMalformed
	}
	return []byte(text), nil
}
