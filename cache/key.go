package cache

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash/maphash"
	"strconv"
)

// seed makes the hashes of this process unpredictable. Otherwise clients, who choose variables and
// request bodies, could craft collisions.
var seed = maphash.MakeSeed()

// KeyParts is everything that determines the rows of a result and who may see it. Two requests share a
// result only if all parts are equal.
type KeyParts struct {
	Project   int64
	RowFilter string // restricts the rows that the caller may see; empty if it may see all rows of the project
	Endpoint  string // id of a published endpoint; empty for an ad-hoc query
	Version   int    // version of the endpoint
	Query     string // canonical text of the query, or a collision-free digest of it
	Variables string // canonical variables of this run
	Zone      string // time zone of the query
	Extra     string // anything else that affects the result, such as limits or the revision of the schema
}

// Key identifies a result. KeyParts.Key creates it. It is comparable, and lookups with it do not allocate.
type Key struct {
	project int64
	hash    uint64
	text    string
}

// Key encodes the parts. Different parts always have different keys.
func (p KeyParts) Key() Key {
	parts := [...]string{p.RowFilter, p.Endpoint, p.Query, p.Variables, p.Zone, p.Extra}
	size := 3 * binary.MaxVarintLen64
	for _, part := range parts {
		size += binary.MaxVarintLen32 + len(part)
	}
	text := make([]byte, 0, size)
	text = binary.AppendVarint(text, p.Project)
	text = binary.AppendVarint(text, int64(p.Version))
	for _, part := range parts {
		text = binary.AppendUvarint(text, uint64(len(part)))
		text = append(text, part...)
	}
	return keyOf(p.Project, string(text))
}

// keyOf returns the key of a project with encoded parts.
func keyOf(project int64, text string) Key {
	return Key{project: project, hash: maphash.String(seed, text), text: text}
}

// Project returns the project that the result belongs to.
func (k Key) Project() int64 { return k.project }

// Size returns how many bytes of memory the key's text takes.
func (k Key) Size() int { return len(k.text) }

// Digest identifies the key in all processes. It reveals none of the parts.
func (k Key) Digest() [sha256.Size]byte { return sha256.Sum256([]byte(k.text)) }

// String returns a digest of the key for responses and logs. It is the same in every process, and
// reveals none of the parts except the project.
func (k Key) String() string {
	sum := sha256.Sum256([]byte(k.text))
	return "cache_" + strconv.FormatInt(k.project, 10) + "_" + hex.EncodeToString(sum[:16])
}
