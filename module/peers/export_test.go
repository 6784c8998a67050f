package peers

import (
	"crypto/tls"
	"io"
)

// Certificate is the certificate of a server, with its key.
func Certificate(i *Identity) tls.Certificate { return i.certificate }

// Read reads an answer.
func Read(r io.Reader, most int) (Answer, error) { return read(r, most, func() {}) }
