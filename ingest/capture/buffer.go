package capture

import "io"

// buffer is bytes that grow within a limit and within the memory lent to the request.
type buffer struct {
	b      []byte
	most   int
	memory Memory
}

// memoryError is an error of Memory on its way through a reader.
type memoryError struct{ cause error }

func (e *memoryError) Error() string { return e.cause.Error() }
func (e *memoryError) Unwrap() error { return e.cause }

func (b *buffer) tooLarge() *RefusalError {
	return refuse(TooLarge, "The payload takes more than %d bytes when it is decoded.", b.most)
}

// A buffer above this size, in bytes, grows by a quarter; below it, it doubles.
const largeBuffer = 8 << 20

// reserve makes room for n more bytes.
func (b *buffer) reserve(n int) error {
	need := len(b.b) + n
	if need <= cap(b.b) {
		return nil
	}
	size := max(need, cap(b.b)+cap(b.b)/4)
	if size < largeBuffer {
		size = max(need, 2*cap(b.b), 4<<10)
	}
	size = min(size, b.most)
	if need > size {
		return b.tooLarge()
	}
	if err := b.memory.Take(size); err != nil {
		return &memoryError{err}
	}
	old := b.b
	b.b = append(make([]byte, 0, size), old...)
	b.memory.Return(cap(old))
	return nil
}

// release gives back the memory of the buffer and leaves it empty.
func (b *buffer) release() {
	b.memory.Return(cap(b.b))
	b.b = nil
}

// readFrom reads a reader to its end. It returns errors of the reader as they are.
func (b *buffer) readFrom(in io.Reader, expect int) error {
	if err := b.reserve(min(max(expect, 512), b.most-len(b.b))); err != nil {
		return err
	}
	for {
		if len(b.b) == cap(b.b) {
			if len(b.b) == b.most {
				return b.atEnd(in)
			}
			if err := b.reserve(1); err != nil {
				return err
			}
		}
		n, err := in.Read(b.b[len(b.b):cap(b.b)])
		b.b = b.b[:len(b.b)+n]
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// atEnd checks that a full buffer holds all of a reader.
func (b *buffer) atEnd(in io.Reader) error {
	var more [1]byte
	switch n, err := io.ReadFull(in, more[:]); {
	case n > 0:
		return b.tooLarge()
	case err == io.EOF:
		return nil
	default:
		return err
	}
}
