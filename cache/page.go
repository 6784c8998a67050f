package cache

import (
	"crypto/sha256"
	"encoding/base64"
	"hash/maphash"
	"strconv"
	"sync"
	"time"
)

// PageKey identifies a page of an entry. The body that render appends must depend only on the entry and
// the PageKey.
type PageKey struct {
	Offset, Limit int
	Variant       string // anything else that the body depends on, such as whether it has the debug fields
}

// Body is a rendered page, ready to be sent. It is shared: its bytes must not be changed.
type Body struct {
	Bytes    []byte
	Encoding Encoding
	// The strong entity tag of this representation, quoted. It depends on the content and the encoding.
	ETag string
	// The length of Bytes in decimal, for the header.
	ContentLength string
}

// compressFrom is the minimum length of a body that is compressed.
const compressFrom = 1 << 10

// pageTTL is how long a page is kept.
const pageTTL = 10 * time.Minute

// pageOverhead is the memory of a page's structs and of Ristretto's bookkeeping.
const pageOverhead = 384

type pageID struct {
	entry uint64
	PageKey
	encoding Encoding
}

func (id *pageID) hash() uint64 { return maphash.Comparable(seed, *id) }

type page struct {
	id   pageID
	body Body
}

// rendering is a page being rendered. Concurrent calls for the same page share it.
type rendering struct{ body func() Body }

// GetPage returns a page of an entry in an encoding if it is stored, else nil: the part of Page that needs no render.
// A miss is not counted, because Page follows.
func (c *Cache) GetPage(e *Entry, key PageKey, encoding Encoding) *Body {
	pg := c.lookupPage(&pageID{entry: e.id, PageKey: key, encoding: encoding})
	if pg == nil {
		return nil
	}
	c.stats.pageHit()
	return &pg.body
}

// Page returns a page of an entry in an encoding: the stored body, or the one that render appends to dst,
// which is then stored. A body that is short, or that compression does not make shorter, is not compressed.
func (c *Cache) Page(e *Entry, key PageKey, encoding Encoding, render func(dst []byte) []byte) Body {
	id := pageID{entry: e.id, PageKey: key, encoding: encoding}
	if pg := c.lookupPage(&id); pg != nil {
		c.stats.pageHit()
		return pg.body
	}
	c.renderMu.Lock()
	r := c.renderings[id]
	if r == nil {
		r = &rendering{body: sync.OnceValue(func() Body { return c.renderAndKeep(id, render) })}
		c.renderings[id] = r
	}
	c.renderMu.Unlock()
	return r.body()
}

// lookupPage returns the page in the store, or nil.
func (c *Cache) lookupPage(id *pageID) *page {
	if pg, ok := c.store.get(id.hash()).(*page); ok && pg.id == *id {
		return pg
	}
	return nil
}

func (c *Cache) renderAndKeep(id pageID, render func([]byte) []byte) Body {
	defer func() {
		c.renderMu.Lock()
		delete(c.renderings, id)
		c.renderMu.Unlock()
	}()
	if pg := c.lookupPage(&id); pg != nil { // rendered since the caller's lookup
		c.stats.pageHit()
		return pg.body
	}
	c.stats.pageMisses.Add(1)
	body := c.Render(id.encoding, render)
	hash := id.hash()
	c.store.put(hash, &page{id: id, body: body}, int64(cap(body.Bytes)+len(id.Variant))+pageOverhead, pageTTL)
	c.store.settle()
	return body
}

// Render renders a body like Page, but does not store it. Use it for a page that is not needed again.
func (c *Cache) Render(encoding Encoding, render func(dst []byte) []byte) Body {
	scratch := scratchPool.Get().(*[]byte)
	defer func() {
		if cap(*scratch) <= maxScratch {
			scratchPool.Put(scratch)
		}
	}()
	*scratch = render((*scratch)[:0])
	plain := *scratch
	var packed []byte
	if len(plain) >= compressFrom {
		switch encoding {
		case Gzip:
			packed = compressGzip(plain)
		case Zstd:
			packed = compressZstd(c.zstd, plain)
		case Identity:
		}
	}
	if packed == nil || len(packed) >= len(plain) {
		encoding = Identity
		if cap(plain) > maxScratch {
			packed = fit(plain) // this memory does not go back to the pool
		} else {
			packed = exact(plain)
		}
	}
	return Body{
		Bytes:         packed,
		Encoding:      encoding,
		ETag:          etag(plain, encoding),
		ContentLength: strconv.Itoa(len(packed)),
	}
}

// scratchPool has buffers to render into. Those of huge pages are not kept.
var scratchPool = sync.Pool{New: func() any { return new([]byte) }}

const maxScratch = 4 << 20

// etag returns the tag of a body. The encoding follows a dot: Caddy's directive "encode" cuts "-gzip" from the tags of a request, because it adds that
// itself.
func etag(plain []byte, encoding Encoding) string {
	sum := sha256.Sum256(plain)
	tag := make([]byte, 0, 32)
	tag = append(tag, '"')
	tag = base64.RawURLEncoding.AppendEncode(tag, sum[:16])
	if encoding != Identity {
		tag = append(tag, '.')
		tag = append(tag, encoding.String()...)
	}
	return string(append(tag, '"'))
}
