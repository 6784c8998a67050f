package formats

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go/format"
	"github.com/pierrec/lz4/v4"
)

// unfolder unfolds pages before the library does, which takes the memory for whatever a page unfolds to. Unlike the library, it stops at what the header of the
// page says.
type unfolder struct {
	codec            format.CompressionCodec
	zstd             *zstd.Decoder
	packed, unpacked []byte
}

// check refuses a page that unfolds to more than its header says. The page is at an offset in the file.
func (u *unfolder) check(in io.ReaderAt, at int64, header *format.PageHeader) error {
	length := int64(header.CompressedPageSize)
	switch header.Type {
	case format.DataPage, format.DictionaryPage:
	case format.DataPageV2:
		v2 := &header.DataPageHeaderV2.V
		if v2.IsCompressed.Valid && !v2.IsCompressed.V {
			return nil
		}
		levels := int64(max(v2.RepetitionLevelsByteLength, 0)) + int64(max(v2.DefinitionLevelsByteLength, 0)) // they are not compressed
		at, length = at+levels, length-levels
	case format.IndexPage:
		return nil
	}
	if length <= 0 {
		return nil
	}
	if int64(cap(u.packed)) < length {
		u.packed = make([]byte, length)
	}
	u.packed = u.packed[:length]
	if _, err := in.ReadAt(u.packed, at); err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("reading a page of the Parquet file: %w", err)
	}
	switch over, err := u.exceeds(int(header.UncompressedPageSize)); {
	case err != nil:
		return fmt.Errorf("a page of the Parquet file is damaged: %w", err)
	case over:
		return fmt.Errorf("a page of the Parquet file decompresses to more than the %d bytes that its header announces", header.UncompressedPageSize)
	}
	return nil
}

// exceeds reports whether the packed page unfolds to more than that many bytes.
func (u *unfolder) exceeds(most int) (bool, error) {
	switch u.codec {
	case format.Snappy:
		n, err := snappy.DecodedLen(u.packed)
		return n > most, err
	case format.Gzip:
		in, err := gzip.NewReader(bytes.NewReader(u.packed))
		if err != nil {
			return false, err
		}
		return longer(in, most)
	case format.Brotli:
		return longer(brotli.NewReader(bytes.NewReader(u.packed)), most)
	case format.Zstd:
		return u.zstdExceeds(most)
	case format.Lz4Raw:
		if cap(u.unpacked) < most {
			u.unpacked = make([]byte, most)
		}
		_, err := lz4.UncompressBlock(u.packed, u.unpacked[:most]) // it does not tell what is damaged from what is too long
		return err != nil, nil
	case format.Uncompressed, format.LZO, format.Lz4:
	}
	return false, nil // the library copies the page, or refuses the compression
}

func (u *unfolder) zstdExceeds(most int) (bool, error) {
	if u.zstd == nil {
		var err error
		if u.zstd, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxPage)); err != nil {
			return false, err
		}
	}
	var err error
	if u.unpacked, err = u.zstd.DecodeAll(u.packed, u.unpacked[:0]); errors.Is(err, zstd.ErrDecoderSizeExceeded) {
		return true, nil
	}
	return len(u.unpacked) > most, err
}

// longer reports whether more than that many bytes can be read.
func longer(in io.Reader, most int) (bool, error) {
	n, err := io.Copy(io.Discard, io.LimitReader(in, int64(most)+1))
	return n > int64(most), err
}

func (u *unfolder) close() {
	if u.zstd != nil {
		u.zstd.Close()
	}
}
