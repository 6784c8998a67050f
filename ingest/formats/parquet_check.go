package formats

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/parquet-go/parquet-go/format"
)

// The library allocates the memory that a file asks for. These checks look at what it asks for before the library does.

const (
	maxFooter    = 16 << 20
	maxPage      = 256 << 20
	maxPageCells = 16 << 20
	maxOpenPages = 1 << 30 // bytes of the largest page of each column, all in memory at once
	maxHeader    = 1 << 20 // bytes of the header of a page
)

// checkFooter checks the footer of a file.
func checkFooter(in io.ReaderAt, size int64) error {
	const tail = 8
	var end [tail]byte
	if size < 3*4+4 {
		return errors.New("the Parquet file is cut off: it is too short")
	}
	if _, err := in.ReadAt(end[:], size-tail); err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("reading the end of the Parquet file: %w", err)
	}
	if string(end[4:]) == "PARE" {
		return errors.New("the Parquet file is encrypted")
	}
	if string(end[4:]) != "PAR1" {
		return errors.New("the Parquet file is cut off: it does not end with PAR1")
	}
	length := int64(binary.LittleEndian.Uint32(end[:4]))
	if length > min(size-tail-4, maxFooter) {
		return fmt.Errorf("the Parquet file is damaged: its footer of %d bytes does not fit", length)
	}
	footer := make([]byte, length)
	if _, err := in.ReadAt(footer, size-tail-length); err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("reading the footer of the Parquet file: %w", err)
	}
	var meta format.FileMetaData
	if _, err := decode(footer, &meta); err != nil {
		return fmt.Errorf("the footer of the Parquet file is damaged: %w", err)
	}
	return checkSchema(meta.Schema)
}

// maxNesting is how deeply columns may be nested: the library recurses into them.
const maxNesting = 32

func checkSchema(schema []format.SchemaElement) error {
	if len(schema) > 4*maxColumns {
		return fmt.Errorf("the Parquet file has %d columns; it can have %d", len(schema), maxColumns)
	}
	left := []int32{1} // elements that are still to come, by depth
	for _, element := range schema {
		for len(left) > 0 && left[len(left)-1] == 0 {
			left = left[:len(left)-1]
		}
		if len(left) == 0 {
			break
		}
		left[len(left)-1]--
		if children := element.NumChildren; children.Valid {
			left = append(left, children.V)
		}
		if len(left) > maxNesting {
			return errors.New("the columns of the Parquet file are nested too deeply")
		}
	}
	return nil
}

// checkPages checks how much memory the pages of a row group take. It calls unfolded with the bytes that each page unfolds to, and stops at its error.
func checkPages(in io.ReaderAt, size int64, group *format.RowGroup, unfolded func(bytes int64) error) error {
	open := int64(0)
	for i := range group.Columns {
		meta := &group.Columns[i].MetaData
		start := meta.DataPageOffset
		if meta.DictionaryPageOffset != 0 {
			start = meta.DictionaryPageOffset
		}
		if start < 0 || meta.TotalCompressedSize < 0 || meta.TotalCompressedSize > size-start ||
			meta.DataPageOffset < start || meta.DataPageOffset > start+meta.TotalCompressedSize {
			return errors.New("the Parquet file is damaged: a column is said to be where the file has no room for it")
		}
		largest, err := checkChunk(in, start, start+meta.TotalCompressedSize, meta.Codec, unfolded)
		if err != nil {
			return err
		}
		if open += largest; open > maxOpenPages {
			return fmt.Errorf("the pages of the Parquet file take more than %d MiB: write it with smaller pages", maxOpenPages>>20)
		}
	}
	return nil
}

// checkChunk goes through the pages of a column, and returns how much memory the largest one takes.
func checkChunk(in io.ReaderAt, at, end int64, codec format.CompressionCodec, unfolded func(bytes int64) error) (most int64, err error) {
	buffer := make([]byte, 4<<10)
	pages := unfolder{codec: codec}
	defer pages.close()
	for at < end {
		var header format.PageHeader
		n, err := readHeader(in, at, &buffer, &header)
		if err != nil {
			return 0, err
		}
		cells := max(header.DataPageHeader.V.NumValues, header.DataPageHeaderV2.V.NumValues, header.DictionaryPageHeader.V.NumValues)
		bytes := max(header.UncompressedPageSize, header.CompressedPageSize)
		if header.CompressedPageSize < 0 || header.UncompressedPageSize < 0 || bytes > maxPage || cells < 0 || cells > maxPageCells {
			return 0, fmt.Errorf("a page of the Parquet file takes %d MiB and has %d values; it can have %d MiB and %d values: write the file with smaller pages",
				bytes>>20, cells, maxPage>>20, maxPageCells)
		}
		if err := pages.check(in, at+int64(n), &header); err != nil {
			return 0, err
		}
		if err := unfolded(int64(header.UncompressedPageSize)); err != nil {
			return 0, err
		}
		const perCell = 24
		most = max(most, 2*int64(bytes)+perCell*int64(cells))
		at += int64(n) + int64(header.CompressedPageSize)
	}
	return most, nil
}

func readHeader(in io.ReaderAt, at int64, buffer *[]byte, header *format.PageHeader) (int, error) {
	for {
		n, err := in.ReadAt(*buffer, at)
		if err != nil && !errors.Is(err, io.EOF) {
			return 0, fmt.Errorf("reading a page of the Parquet file: %w", err)
		}
		*header = format.PageHeader{}
		size, err := decode((*buffer)[:n], header)
		if err == nil && size > 0 {
			return size, nil
		}
		if n < len(*buffer) || len(*buffer) >= maxHeader {
			return 0, fmt.Errorf("a page of the Parquet file is damaged: %w", errors.Join(err, io.ErrUnexpectedEOF))
		}
		*buffer = make([]byte, 4*len(*buffer))
	}
}
