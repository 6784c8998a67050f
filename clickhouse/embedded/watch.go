//go:build linux || darwin

package embedded

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
)

// watchPath is where the child answers whether tables can be read.
const watchPath = "/watch"

// The parent asks for one row of a table again and again, with JSON in it and times in a zone: threads that hang while they read such
// columns or look at zones leave SELECT 1 alone, and reads of plain columns too.
var (
	makeHeartbeat = []string{
		"CREATE DATABASE IF NOT EXISTS engine ENGINE = Atomic",
		"CREATE TABLE IF NOT EXISTS engine.heartbeat (id UInt8, at DateTime64(3, 'UTC'), data JSON) ENGINE = MergeTree ORDER BY id",
		"INSERT INTO engine.heartbeat SELECT 1, now64(3), '{\"a\": 1}' WHERE (SELECT count() FROM engine.heartbeat) = 0",
	}
	readHeartbeat = "SELECT id, at, toTimeZone(at, 'UTC'), data.a FROM engine.heartbeat WHERE id = 1 LIMIT 1 " +
		"SETTINGS use_query_cache = 0, use_query_condition_cache = 0, use_uncompressed_cache = 0"
)

// heart is a session for reading the heartbeat, which no query can occupy.
type heart struct {
	sync.Mutex

	conn *conn
}

var errStillReading = errors.New("the last read has not come back yet")

// beat reads the heartbeat. It waits as long as the engine does; an error of the engine's is an answer, too, and is returned.
func (h *heart) beat() (answer string, err error) {
	if !h.TryLock() {
		return "", errStillReading
	}
	defer h.Unlock()
	if h.conn == nil {
		return "", errStopped
	}
	text, err := h.conn.text(readHeartbeat, "TSV")
	if exception, ok := errors.AsType[*exceptionError](err); ok {
		return exception.text, nil
	}
	if text == "" {
		return "the heartbeat's table is empty", err
	}
	return "", err
}

var errStopped = errors.New("the engine has stopped")

func (h *heart) open(lib *library, path string) (err error) {
	h.Lock()
	defer h.Unlock()
	h.conn, err = lib.open("--path=" + path)
	return err
}

func (h *heart) close() {
	h.Lock()
	defer h.Unlock()
	h.conn.close()
	h.conn = nil
}

// answerWatch tells the parent that the engine reads tables. The body is empty unless the engine answered with an error.
func (s *server) answerWatch(w http.ResponseWriter, r *http.Request) {
	if err := s.authenticate(r, nil); err != nil {
		http.Error(w, err.Error(), http.StatusForbidden)
		return
	}
	answer, err := s.heart.beat()
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	_, _ = io.WriteString(w, answer) // a parent that has gone needs no answer
}

// makeHeart makes what the heartbeat reads.
func (s *server) makeHeart() error {
	for _, sql := range makeHeartbeat {
		if _, err := s.anchor.text(sql, "TSV"); err != nil {
			return fmt.Errorf("making the heartbeat's table: %w", err)
		}
	}
	return s.heart.open(s.lib, s.path)
}
