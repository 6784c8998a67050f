package cache

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash/maphash"
	"strconv"
)

// seed makes the hashes of this process unpredictable: variables and request bodies are chosen by
// clients, who could otherwise craft collisions.
var seed = maphash.MakeSeed()

// KeyParts is everything that decides what a result holds and who may see it. Two requests share a
// result only if all parts are equal.
type KeyParts struct {
	Project   int64
	RowFilter string // what narrows the rows that the caller may see; empty when it sees all of the project
	Endpoint  string // id of a published endpoint; empty for a query sent as such
	Version   int    // version of the endpoint
	Query     string // canonical text of the query, or a collision-free digest of it
	Variables string // canonical variables of this run
	Zone      string // time zone in which the query is read
	Extra     string // whatever else decides the answer, such as limits or the revision of the schema
}

// Key names a result. It is made by KeyParts.Key, is comparable, and costs nothing to look up with.
type Key struct {
	project int64
	hash    uint64
	text    string
}

// Key encodes the parts so that different parts always give different keys.
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
	return Key{project: p.Project, hash: maphash.Bytes(seed, text), text: string(text)}
}

// Project is the project that the result belongs to.
func (k Key) Project() int64 { return k.project }

// String is a digest of the key that is fit for answers and logs: it is the same in every process, and
// tells nothing of the parts but the project.
func (k Key) String() string {
	sum := sha256.Sum256([]byte(k.text))
	return "cache_" + strconv.FormatInt(k.project, 10) + "_" + hex.EncodeToString(sum[:16])
}
