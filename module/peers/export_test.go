package peers

import (
	"crypto/tls"
	"io"
)

// Certificate is the certificate of a server, with its key.
func Certificate(i *Identity) tls.Certificate { return i.certificate }

// Links is to how many servers there are connections.
func (p *Peers) Links() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.links)
}

// Read reads an answer.
func Read(r io.Reader, most int) (Answer, error) { return read(r, most, func() {}) }
