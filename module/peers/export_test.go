package peers

import (
	"crypto/tls"
	"io"
)

// Certificate is the certificate of a server, with its key.
func Certificate(i *Identity) tls.Certificate { return i.certificate }

// Links returns how many servers there are connections to.
func (p *Peers) Links() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.links)
}

// Read reads an answer.
func Read(r io.Reader, most int) (Answer, error) {
	return read(r, most, &room{most: maxHeldBytes}, func() {})
}

// SetRoom sets how many bytes a server sends and reads at a time.
func SetRoom(p *Peers, sending, reading int64) { p.sending.most, p.reading.most = sending, reading }

// Held returns how many bytes a server is sending and reading.
func Held(p *Peers) (sending, reading int64) { return p.sending.held.Load(), p.reading.held.Load() }
