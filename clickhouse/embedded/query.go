//go:build linux || darwin

package embedded

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// query is the statement of one request.
type query struct {
	id       string // the client's query id
	text     string
	database string
	format   string            // of the result, unless the text has a FORMAT clause
	settings map[string]string // for this query only
	params   []param
	data     io.Reader // rows that follow an INSERT; may be nil
	whole    bool      // send nothing before the result is complete
	free     bool      // runs without a slot

	mark   string             // the value of markSetting in system.processes
	cancel context.CancelFunc // stops the query
	done   chan struct{}
}

// Codes of the engine's errors that this server uses.
const (
	codeNotImplemented  = 48
	codeSyntax          = 62
	codeBadArguments    = 36
	codeUnknownDatabase = 81
	codeUnknownSetting  = 115
	codeReadonly        = 164
	codeSameID          = 216
	codeCancelled       = 394
)

// run runs a query: it waits for a slot, opens a session with the query's settings, and sends the result.
// An error on the client's side also ends the query, and is returned.
func (s *server) run(ctx context.Context, q *query, out *answer) error {
	ctx, q.cancel = context.WithCancel(ctx)
	defer q.cancel()
	if err := s.enter(q); err != nil {
		return err
	}
	defer s.leave(q)
	leave := func() {}
	if !q.free && q.text != ping && !readsOnlyProcesses(q.text) {
		select {
		case s.slots <- struct{}{}:
			leave = sync.OnceFunc(func() { <-s.slots })
			defer leave()
		case <-ctx.Done():
			return errNotStarted
		}
	}
	if ctx.Err() != nil {
		return errNotStarted
	}

	// All calls of a session must run on one thread, because the engine attaches the query to it.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer setNice(q.settings["os_threads_nice_value_query"])()
	c, err := s.session(q)
	if err != nil {
		return err
	}
	defer c.close()

	ended := make(chan struct{})
	defer close(ended)
	go s.strays.follow(ctx, ended, leave)
	unwatch := context.AfterFunc(ctx, func() { s.kill(q.mark, ended) })
	defer unwatch()
	err = s.execute(ctx, c, q, out)
	if err != nil && ctx.Err() != nil {
		// Any error now is a consequence of the cancellation.
		if e, ok := errors.AsType[*exceptionError](err); !ok || e.code != codeCancelled {
			err = exceptionf(codeCancelled, "QUERY_WAS_CANCELLED", "Query was cancelled")
		}
	}
	return err
}

var errNotStarted = exceptionf(codeCancelled, "QUERY_WAS_CANCELLED", "Query was cancelled before it started")

// ping is the query with which clickhouse-go pings. It needs no slot, because a busy engine is alive.
const ping = "SELECT 1"

// readsOnlyProcesses reports whether a query only reads system.processes. Such queries need no slot, so that they work while
// all slots are busy.
func readsOnlyProcesses(text string) bool {
	if len(text) > 1024 {
		return false
	}
	text = strings.ToUpper(text)
	return strings.Contains(text, " FROM SYSTEM.PROCESSES WHERE ") && strings.Count(text, "FROM") == 1 &&
		!strings.Contains(text, "JOIN") && !strings.Contains(text, "UNION")
}

// enter adds the query to the running ones.
func (s *server) enter(q *query) error {
	q.mark = strconv.FormatUint(s.serial.Add(1), 10)
	q.done = make(chan struct{})
	s.queries.Lock()
	defer s.queries.Unlock()
	if s.queries.closed {
		return exceptionf(codeCancelled, "QUERY_WAS_CANCELLED", "The engine is stopping")
	}
	if s.queries.byID[q.id] != nil {
		return exceptionf(codeSameID, "QUERY_WITH_SAME_ID_IS_ALREADY_RUNNING", "Query with id = %s is already running", q.id)
	}
	s.queries.byID[q.id] = q
	s.running.Add(1)
	return nil
}

func (s *server) leave(q *query) {
	s.queries.Lock()
	delete(s.queries.byID, q.id)
	s.queries.Unlock()
	close(q.done)
	s.running.Done()
}

// markSetting is a setting that has no effect here, because the engine may not read from other databases. Its value tells a query's row in
// system.processes. The text there does not: the engine writes the text of a query with parameters anew, without comments.
const markSetting = "external_storage_max_read_rows"

// byMark selects the row of a query in system.processes.
const byMark = "Settings['" + markSetting + "'] = {mark:String}"

// session opens a session for one query.
func (s *server) session(q *query) (*conn, error) {
	args := []string{"--path=" + s.path}
	for name, value := range q.settings {
		if !s.settings[name] {
			return nil, exceptionf(codeUnknownSetting, "UNKNOWN_SETTING", "Unknown setting '%s'", name)
		}
		if strings.ContainsRune(value, 0) {
			return nil, exceptionf(codeBadArguments, "BAD_ARGUMENTS", "The value of setting '%s' contains a zero byte", name)
		}
		args = append(args, "--"+name+"="+value)
	}
	slices.Sort(args[1:])
	args = append(args, "--"+markSetting+"="+q.mark) // the last one counts
	c, err := s.lib.open(args...)
	if err != nil {
		return nil, s.explainRefusal(q, err)
	}
	if q.database != "default" { // the database of a new session
		if _, err := c.text("USE "+quoteName(q.database), "TSV"); err != nil {
			c.close()
			return nil, err
		}
	}
	return c, nil
}

// explainRefusal finds the setting whose value the engine refused, because opening a session does not report it.
func (s *server) explainRefusal(q *query, refused error) error {
	c, err := s.lib.open("--path=" + s.path)
	if err != nil {
		return err
	}
	defer c.close()
	for name, value := range q.settings {
		if _, err := c.text("SET "+name+" = "+quoteText(value), "TSV"); err != nil {
			return err
		}
		if _, err := c.text("SET "+name+" = DEFAULT", "TSV"); err != nil {
			return err
		}
	}
	return refused
}

// execute runs the query in the way that its statement and format need.
func (s *server) execute(ctx context.Context, c *conn, q *query, out *answer) error {
	st := readStatement(q.text)
	if q.data != nil {
		if st.first == "INSERT" && (st.format != "" || !st.hasWord(q.text, "SELECT")) {
			return insert(c, q, st, out)
		}
		// The text continues in the body.
		rest, err := io.ReadAll(q.data)
		if err != nil {
			return fmt.Errorf("reading the request: %w", err)
		}
		q.text += "\n" + string(rest)
		st = readStatement(q.text)
	}
	a := c.classify(q.text)
	if err := permit(c, q, st, a); err != nil {
		return err
	}
	if st.format != "" && st.first != "INSERT" {
		q.format = st.format
	}
	out.format(q.format)
	rows, streams := streamable(q.format)
	// This setting turns a row format into a document.
	document := strings.Contains(q.text, jsonArraySetting) || q.settings[jsonArraySetting] != ""
	switch {
	case a.Class != classReadOnly, q.whole:
		return complete(c, q, out)
	case !streams, document:
		return s.pipe(c, q, st, out)
	}
	err := stream(ctx, c, q, rows, out)
	if e, ok := errors.AsType[*exceptionError](err); ok && e.code == codeBadArguments && strings.Contains(e.text, "Streaming query is not supported") {
		return complete(c, q, out) // SHOW, EXPLAIN and similar statements
	}
	return err
}

const jsonArraySetting = "output_format_json_array_of_rows"

// freezes reports whether a statement links the parts of a table into the engine's own folder for a backup, and does nothing else.
func freezes(st statement, text string) bool {
	return st.first == "ALTER" && st.hasWord(text, "FREEZE") && !st.hasWord(text, "OUTFILE")
}

// permit refuses statements that a server's HTTP interface refuses, but the library would run.
func permit(c *conn, q *query, st statement, a analysis) error {
	switch {
	case a.Statements == 0:
		// It does not parse. formatQuery returns the reason with the position, without running anything.
		if _, err := c.text("SELECT formatQuery({q:String})", "TSV", param{"q", escapeText(q.text)}); err != nil {
			return trimScope(err)
		}
		return exceptionf(codeSyntax, "SYNTAX_ERROR", "Syntax error")
	case a.Statements > 1:
		return exceptionf(codeSyntax, "SYNTAX_ERROR", "Syntax error (Multi-statements are not allowed)")
	case a.Class != classReadOnly && q.settings["readonly"] != "" && q.settings["readonly"] != "0":
		return exceptionf(codeReadonly, "READONLY", "Cannot execute query in readonly mode")
	case a.Class == classControl && !freezes(st, q.text) && !slices.Contains([]string{"KILL", "SET", "USE", "SYSTEM", "CREATE", "ATTACH", "DETACH"}, st.first):
		// One of these is INTO OUTFILE: the library would write the file.
		return exceptionf(codeNotImplemented, "NOT_IMPLEMENTED", "This statement is not supported by the embedded engine")
	case st.first == "INSERT" && st.hasWord(q.text, "INFILE"):
		return exceptionf(codeNotImplemented, "NOT_IMPLEMENTED", "INFILE is not supported by the embedded engine")
	}
	return nil
}

// trimScope removes the text of the formatQuery statement from a syntax error.
func trimScope(err error) error {
	e, ok := errors.AsType[*exceptionError](err)
	if !ok || e.code != codeSyntax {
		return err
	}
	if at := strings.Index(e.text, ": In scope SELECT formatQuery("); at >= 0 {
		return &exceptionError{e.code, e.text[:at] + ". (SYNTAX_ERROR)"}
	}
	return e
}

// complete runs a statement to its end and sends its result.
func complete(c *conn, q *query, out *answer) error {
	r, err := c.query(q.text, q.format, q.params)
	if err != nil {
		return err
	}
	defer r.free()
	out.progress.count(r)
	_, err = out.Write(r.bytes())
	return err
}

// stream sends a result while the query runs. The engine blocks while the client is slow.
func stream(ctx context.Context, c *conn, q *query, rows rowFormat, out *answer) error {
	st, err := c.stream(q.text, q.format, q.params)
	if err != nil {
		return err
	}
	defer st.close()
	pieces := joiner{format: rows}
	for {
		// A stream must be read once before it is closed: else the engine runs the query while it closes the stream, on threads that do not
		// belong to the query and so count on none of its limits.
		r, err := st.next()
		if err != nil {
			return err
		}
		piece := r.bytes()
		if len(piece) == 0 {
			r.free()
			_, err := out.Write(pieces.end())
			return err
		}
		out.progress.count(r)
		_, err = out.Write(pieces.join(piece))
		r.free()
		if err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
}

// insert runs an INSERT with rows in the request.
func insert(c *conn, q *query, st statement, out *answer) error {
	if readonly := q.settings["readonly"]; readonly != "" && readonly != "0" {
		return exceptionf(codeReadonly, "READONLY", "Cannot execute query in readonly mode")
	}
	text, format := q.text, "Values"
	if st.format != "" {
		// The library takes the name of the format separately.
		text, format = text[:st.formatStart]+text[st.formatEnd:], st.format
	}
	out.format("Null")
	// The library appends the format to the text. The newline ends a trailing comment.
	in, err := c.insert(strings.TrimRight(text, "; \t\r\n")+"\n", format, q.params)
	if err != nil {
		return err
	}
	defer in.close()
	_, err = io.CopyBuffer(struct{ io.Writer }{in}, struct{ io.Reader }{q.data}, make([]byte, 256<<10))
	if err != nil && !errors.Is(err, errInsertStopped) {
		return fmt.Errorf("reading the rows to insert: %w", err)
	}
	r, err := in.done()
	if err != nil {
		return err
	}
	defer r.free()
	out.progress.count(r)
	return nil
}

// kill kills the query with this mark, repeatedly until it has ended, because it may not have started yet.
func (s *server) kill(mark string, ended <-chan struct{}) {
	for wait := 50 * time.Millisecond; ; wait = min(2*wait, time.Second) {
		s.control.Lock()
		if s.control.conn == nil {
			s.control.Unlock()
			return // the engine has stopped, and the query with it
		}
		// Ignore the error: the loop ends with the query.
		_, _ = s.control.conn.text("KILL QUERY WHERE "+byMark+" ASYNC", "TSV", param{"mark", mark})
		s.control.Unlock()
		select {
		case <-ended:
			return
		case <-time.After(wait):
		}
	}
}

// killByID kills the query with a client's id, and returns the status for KILL QUERY's result.
func (s *server) killByID(ctx context.Context, id string, wait bool) (status string, killed *query) {
	s.queries.Lock()
	q := s.queries.byID[id]
	s.queries.Unlock()
	if q == nil {
		return "", nil
	}
	q.cancel()
	if !wait {
		return "waiting", q
	}
	select {
	case <-q.done:
		return "finished", q
	case <-ctx.Done():
		return "waiting", q
	}
}

// quoteName quotes a text as an identifier.
func quoteName(name string) string {
	return "`" + strings.NewReplacer(`\`, `\\`, "`", "\\`").Replace(name) + "`"
}

// quoteText quotes a text as a string literal.
func quoteText(text string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(text) + "'"
}

// escapeText escapes a value for a query parameter.
func escapeText(text string) string {
	return strings.NewReplacer(`\`, `\\`, "\t", `\t`, "\n", `\n`, "\r", `\r`, "\x00", `\0`).Replace(text)
}
