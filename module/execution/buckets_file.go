package execution

import (
	"bufio"
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/klauspost/compress/zstd"

	"github.com/caddy-analytics/caddy-analytics/cache"
	"github.com/caddy-analytics/caddy-analytics/internal/wholefile"
	"github.com/caddy-analytics/caddy-analytics/module/warehouse"
)

// BucketsFile keeps the cached buckets of time between two runs of the process.
type BucketsFile struct {
	Path string
	// Writer identifies what determines the rows besides the data, such as the program and the engine. A file of another writer is not read.
	Writer string
}

// bucketsHeader is the beginning of the file.
type bucketsHeader struct {
	Writer string
	Shards map[string]*warehouse.Versions // by the name of the shard; empty for the main one
}

// Save writes the buckets of a cache at the end of the process, when nothing is written to ClickHouse any more. It returns how many queries have
// buckets. If none has any, or while the versions of the data are in doubt, it leaves no file.
func (f BucketsFile) Save(ctx context.Context, c *cache.Cache, shards *warehouse.Shards) (queries int, err error) {
	header := bucketsHeader{Writer: f.Writer, Shards: map[string]*warehouse.Versions{}}
	for name, w := range shards.ByName() {
		versions, ok, err := w.Versions(ctx)
		if err != nil {
			return 0, fmt.Errorf("reading the versions of the tables: %w", err)
		}
		if !ok {
			return 0, nil
		}
		header.Shards[name] = versions
	}
	r, w := io.Pipe()
	written := make(chan int)
	go func() {
		queries, err := writeBuckets(w, header, c)
		_ = w.CloseWithError(err) // which never fails
		written <- queries
	}()
	err = errors.Join(wholefile.Write(f.Path, r), r.Close())
	if queries = <-written; err == nil && queries == 0 {
		err = f.Remove()
	}
	return queries, err
}

// Remove removes the file, if there is one.
func (f BucketsFile) Remove() error {
	if err := os.Remove(f.Path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func writeBuckets(w io.Writer, header bucketsHeader, c *cache.Cache) (queries int, err error) {
	packed, err := zstd.NewWriter(w, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1))
	if err != nil {
		return 0, err
	}
	if err = gob.NewEncoder(packed).Encode(header); err == nil {
		queries, err = c.SavePieces(packed)
	}
	return queries, errors.Join(err, packed.Close())
}

// Load reads the buckets that Save wrote, before anything is written to ClickHouse, and removes the file: it is valid for one start only. It returns
// how many queries have buckets; 0 if there is no file, another writer wrote it, or the data have changed.
func (f BucketsFile) Load(ctx context.Context, c *cache.Cache, shards *warehouse.Shards) (queries int, err error) {
	file, err := os.Open(f.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if err := os.Remove(f.Path); err != nil { // first, so that no other process ever finds it
		return 0, err
	}
	packed, err := zstd.NewReader(file, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxBucketsMemory))
	if err != nil {
		return 0, err
	}
	defer packed.Close()
	in := bufio.NewReader(packed) // a byte reader: the decoder reads no further than it decodes
	var header bucketsHeader
	if err := gob.NewDecoder(in).Decode(&header); err != nil {
		return 0, fmt.Errorf("reading the beginning: %w", err)
	}
	if header.Writer != f.Writer {
		return 0, nil
	}
	for name, w := range shards.ByName() {
		versions := header.Shards[name]
		if versions == nil {
			continue // nothing is known of earlier versions, and no piece has one of those to come
		}
		if ok, err := w.Resume(ctx, versions); err != nil || !ok {
			return 0, err
		}
	}
	return c.LoadPieces(in)
}

// maxBucketsMemory is the most memory for decompressing a file.
const maxBucketsMemory = 64 << 20
