//go:build linux || darwin

package embedded

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
)

// watchPath is the child's path for checks that tables can be read.
const watchPath = "/watch"

// The parent repeatedly reads one row of a table, with a JSON column and a time in a zone. Threads that hang while they read such
// columns or load zones do not affect SELECT 1 or reads of plain columns.
var (
	makeHeartbeat = []string{
		"CREATE DATABASE IF NOT EXISTS engine ENGINE = Atomic",
		"CREATE TABLE IF NOT EXISTS engine.heartbeat (id UInt8, at DateTime64(3, 'UTC'), data JSON) ENGINE = MergeTree ORDER BY id",
		"INSERT INTO engine.heartbeat SELECT 1, now64(3), '{\"a\": 1}' WHERE (SELECT count() FROM engine.heartbeat) = 0",
	}
	readHeartbeat = "SELECT id, at, toTimeZone(at, 'UTC'), data.a FROM engine.heartbeat WHERE id = 1 LIMIT 1 " +
		"SETTINGS use_query_cache = 0, use_query_condition_cache = 0, use_uncompressed_cache = 0"
)

// heartbeatSession is a session that reads the heartbeat table. Queries cannot occupy it.
type heartbeatSession struct {
	sync.Mutex

	conn *conn
}

var errStillReading = errors.New("the last read has not returned yet")

// beat reads the heartbeat. It blocks until the engine answers. An error of the engine is also an answer.
func (h *heartbeatSession) beat() (answer string, err error) {
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
		return "the heartbeat table is empty", err
	}
	return "", err
}

var errStopped = errors.New("the engine has stopped")

func (h *heartbeatSession) open(lib *library, path string) (err error) {
	h.Lock()
	defer h.Unlock()
	h.conn, err = lib.open("--path=" + path)
	return err
}

func (h *heartbeatSession) close() {
	h.Lock()
	defer h.Unlock()
	h.conn.close()
	h.conn = nil
}

// answerWatch answers whether the engine can read tables. The body is empty unless the engine answered with an error.
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
	_, _ = io.WriteString(w, answer) // the parent may have disconnected
}

// createHeartbeat creates the heartbeat table.
func (s *server) createHeartbeat() error {
	for _, sql := range makeHeartbeat {
		if _, err := s.anchor.text(sql, "TSV"); err != nil {
			return fmt.Errorf("creating the heartbeat table: %w", err)
		}
	}
	return s.heart.open(s.lib, s.path)
}
