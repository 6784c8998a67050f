package imports

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/google/uuid"

	"github.com/caddy-analytics/caddy-analytics/internal/wholefile"
)

// Add stores a file and queues it for import. expected is its announced size in bytes, 0 if unknown; a file larger than most is refused with ErrSize.
func (s *Service) Add(request Request, body io.Reader, expected, most int64) (*Import, error) {
	up, err := s.enter(request.Project, expected, most)
	if err != nil {
		return nil, err
	}
	defer s.exit(up)
	one := &Import{Request: request, ID: uuid.NewString(), Status: Waiting, CreatedAt: time.Now().UTC()}
	if err := errors.Join(os.MkdirAll(s.folder(request.Project), 0o700), wholefile.SyncFolder(s.config.Folder)); err != nil {
		return nil, diskError(err)
	}
	partial, data := s.file(one.Project, one.ID, partialFile), s.file(one.Project, one.ID, dataFile)
	defer use(partial, data)()
	if one.Size, err = receive(partial, &uploading{in: body, s: s, up: up}, most); err != nil {
		return nil, errors.Join(err, remove(partial))
	}
	if err := os.Rename(partial, data); err != nil {
		return nil, errors.Join(diskError(err), remove(partial))
	}
	if err := s.save(one); err != nil {
		return nil, errors.Join(diskError(err), remove(data))
	}
	s.look()
	return one, nil
}

// upload is a file that is being uploaded.
type upload struct {
	project  int64
	most     int64 // bytes of a file
	reserved int64 // bytes of room that it takes: what has come, and at most one step more
}

// step is how many bytes an upload reserves at a time.
const step = 16 << 20

// enter takes a place for an upload, provided that there is room for its expected size. It reserves room for the first step.
func (s *Service) enter(project, expected, most int64) (*upload, error) {
	up := &upload{project: project, most: most}
	if err := s.reserve(up, max(expected, min(step, most)), min(step, most)); err != nil {
		return nil, err
	}
	return up, nil
}

// exit gives back the place of an upload.
func (s *Service) exit(up *upload) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.uploading, up)
}

// reserve reserves more bytes for an upload, provided that there is room for needed bytes.
func (s *Service) reserve(up *upload, needed, more int64) error {
	s.mu.Lock() // an upload that ended meanwhile would be neither among the files nor among the uploads
	defer s.mu.Unlock()
	queued, err := s.queued()
	if err != nil {
		return err
	}
	places, size, own := 0, needed+s.spooled(), needed
	for _, one := range queued {
		size += one.Size
		if one.Project == up.project {
			places++
			own += one.Size
		}
	}
	for other := range s.uploading {
		size += other.reserved
		if other.project == up.project {
			own += other.reserved
			if other != up {
				places++
			}
		}
	}
	switch {
	case places >= maxWaiting && !s.uploading[up]:
		return ErrQueue
	case size > roomFactor*up.most, own > ownFactor*up.most:
		return ErrRoom
	}
	s.uploading[up] = true
	up.reserved += more
	return nil
}

// uploading reads a body for as long as there is room for it.
type uploading struct {
	in io.Reader
	s  *Service
	up *upload
	n  int64
}

func (u *uploading) Read(into []byte) (int, error) {
	n, err := u.in.Read(into)
	if u.n += int64(n); u.n > u.up.reserved && u.n <= u.up.most {
		if err := u.s.reserve(u.up, step, step); err != nil {
			return n, err
		}
	}
	return n, err // io.Reader: callers compare the error
}

// spooled returns the total size of files kept for reading, in bytes.
func (s *Service) spooled() (size int64) {
	names, err := filepath.Glob(filepath.Join(s.config.Folder, spoolPattern))
	if err != nil {
		return 0
	}
	for _, name := range names {
		if info, err := os.Stat(name); err == nil {
			size += info.Size()
		}
	}
	return size
}

// receive writes a body to a file.
func receive(name string, body io.Reader, most int64) (size int64, err error) {
	file, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600) //nolint:gosec // in the folder of imports
	if err != nil {
		return 0, diskError(err)
	}
	defer func() {
		if closed := file.Close(); err == nil && closed != nil {
			err = diskError(closed)
		}
	}()
	in := &bodyReader{in: body}
	size, err = io.Copy(file, io.LimitReader(in, most+1))
	switch {
	case in.err != nil:
		return size, in.err
	case err != nil:
		return size, diskError(err)
	case size > most:
		return size, ErrSize
	}
	if err := file.Sync(); err != nil {
		return size, diskError(err)
	}
	return size, nil
}

// bodyReader remembers an error of the body, to tell it from one of the disk.
type bodyReader struct {
	in  io.Reader
	err error
}

func (b *bodyReader) Read(into []byte) (int, error) {
	n, err := b.in.Read(into)
	if err != nil && err != io.EOF {
		b.err = err
	}
	return n, err // io.Reader: callers compare the error
}

// diskError marks the error of a full disk as ErrDisk.
func diskError(err error) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return fmt.Errorf("%w: %w", ErrDisk, err)
	}
	return fmt.Errorf("keeping an import: %w", err)
}
