// Package imports answers the routes of imports.
package imports

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/caddy-analytics/caddy-analytics/ingest/formats"
	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/module/execution"
	"github.com/caddy-analytics/caddy-analytics/module/imports"
	"github.com/caddy-analytics/caddy-analytics/module/jsontext"
	"github.com/caddy-analytics/caddy-analytics/module/peers"
)

// Imports handles the routes of imports. Each server knows the imports sent to it, and asks the others for theirs.
type Imports struct {
	Service  *imports.Service
	Executor *execution.Executor
	// MaxSize is the largest file, in bytes as sent.
	MaxSize int64
}

const read, write = "batch_import:read", "batch_import:write"

// Routes returns the routes of imports.
func (s *Imports) Routes() []api.Route {
	return []api.Route{
		{Method: http.MethodGet, Pattern: "imports", Scope: read, Handler: s.list},
		{Method: http.MethodPost, Pattern: "imports", Scope: write, Handler: s.create},
		{Method: http.MethodGet, Pattern: "imports/:name", Scope: read, Handler: s.get},
		{Method: http.MethodDelete, Pattern: "imports/:name", Scope: write, Handler: s.remove},
	}
}

// list lists the imports of all servers that respond.
func (s *Imports) list(ctx context.Context, c *api.Caller, in *api.Input) (*api.Response, error) {
	all, err := s.Service.List(c.Project.ID)
	if err != nil {
		return nil, err
	}
	s.Executor.Poll(ctx, &c.Caller, execution.PeerPoll{Imports: true}, func(other *execution.Polled) bool {
		all = append(all, importsOf(other)...)
		return false
	})
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	imports.Sort(all)
	return api.PageOf(in, all)
}

func (s *Imports) get(ctx context.Context, c *api.Caller, in *api.Input) (*api.Response, error) {
	one, err := s.Service.Get(c.Project.ID, in.At.Name)
	if errors.Is(err, imports.ErrNotFound) {
		err = s.elsewhere(ctx, c, execution.PeerPoll{ID: in.At.Name, Imports: true}, func(other *execution.Polled) bool {
			for _, found := range importsOf(other) {
				one = found
			}
			return one != nil
		})
	}
	if err != nil {
		return nil, mistake(err, s.MaxSize)
	}
	return api.JSON(http.StatusOK, one), nil
}

func (s *Imports) remove(ctx context.Context, c *api.Caller, in *api.Input) (*api.Response, error) {
	err := s.Service.Delete(c.Project.ID, in.At.Name)
	if errors.Is(err, imports.ErrNotFound) {
		err = s.elsewhere(ctx, c, execution.PeerPoll{ID: in.At.Name, Imports: true, Cancel: true}, func(other *execution.Polled) bool {
			return other.Cancelled.Any()
		})
	}
	if err != nil {
		return nil, mistake(err, s.MaxSize)
	}
	return api.NoContent(), nil
}

// elsewhere asks the other servers until one of them knows the import.
func (s *Imports) elsewhere(ctx context.Context, c *api.Caller, poll execution.PeerPoll, knows func(*execution.Polled) bool) error {
	found := false
	all := s.Executor.Poll(ctx, &c.Caller, poll, func(other *execution.Polled) bool {
		found = knows(other)
		return found
	})
	switch {
	case found:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case !all:
		return errUnknown
	}
	return imports.ErrNotFound
}

// errUnknown answers a request for an import that no server knows while one of them does not respond.
var errUnknown = api.Unavailable("error", "A server that may know this import is not responding. Please try again later.", time.Second,
	errors.New("a server that may know an import is not responding"))

// importsOf returns the imports that another server knows.
func importsOf(other *execution.Polled) (all []*imports.Import) {
	if json.Unmarshal(other.Body, &all) != nil {
		return nil
	}
	return all
}

// PolledByPeer answers another server that asks about imports or cancels one. It checks here what the caller may do.
func (s *Imports) PolledByPeer(c *api.Caller, asked *execution.PeerRequest) peers.Answer {
	poll, scope := asked.Poll, read
	if poll.Cancel {
		scope = write
	}
	_, err := api.Authorize(c.Snapshot, c.Key, strconv.FormatInt(asked.Project, 10), &api.Address{Resource: "imports", Name: poll.ID}, &api.Route{Scope: scope})
	if err != nil {
		return peers.Declined("the import is not allowed")
	}
	var all []*imports.Import
	var out execution.Polled
	switch {
	case poll.Cancel:
		if err = s.Service.Delete(asked.Project, poll.ID); err == nil {
			out.Cancelled.Stopped = 1
		}
	case poll.ID == "":
		all, err = s.Service.List(asked.Project)
	default:
		var one *imports.Import
		if one, err = s.Service.Get(asked.Project, poll.ID); err == nil {
			all = append(all, one)
		}
	}
	if err != nil && !errors.Is(err, imports.ErrNotFound) {
		return peers.Declined("imports can't be read here")
	}
	if len(all) > 0 {
		out.Status, out.Body = http.StatusOK, jsontext.Append(nil, all)
	}
	return out.Answer(asked)
}

// create stores the body, and answers once all of it is on disk.
func (s *Imports) create(_ context.Context, c *api.Caller, in *api.Input) (*api.Response, error) {
	request, err := requestOf(in)
	if err != nil {
		return nil, err
	}
	if in.ContentLength > s.MaxSize {
		return nil, mistake(imports.ErrSize, s.MaxSize)
	}
	request.Project, request.CreatedBy = c.Project.ID, c.Key.ID
	in.StreamBody()
	one, err := s.Service.Add(request, in.Body, max(in.ContentLength, 0), s.MaxSize)
	if err != nil {
		return nil, mistake(err, s.MaxSize)
	}
	return api.JSON(http.StatusCreated, one), nil
}

// parameters are the query parameters of an import.
var parameters = []string{"format", "map", "dry_run", "learn_types", "filename"}

func requestOf(in *api.Input) (imports.Request, error) {
	out := imports.Request{}
	query := in.URL.Query()
	for name := range query {
		if !known(name) {
			return out, api.Invalid(name, "invalid_input", "Extra inputs are not permitted: an import has the parameters %s", strings.Join(parameters, ", "))
		}
	}
	format, err := formats.ParseFormat(query.Get("format"))
	if err != nil {
		return out, api.Invalid("format", "invalid_input", "%v", err)
	}
	mapping, err := formats.ParseMapping(query["map"])
	if err != nil {
		return out, api.Invalid("map", "invalid_input", "%v", err)
	}
	out.Format, out.Map = string(format), mapping
	if out.DryRun, err = api.ParseFlag(query.Get("dry_run"), false); err != nil {
		return out, api.Invalid("dry_run", "invalid_input", "A valid boolean is required.")
	}
	if out.LearnTypes, err = api.ParseFlag(query.Get("learn_types"), true); err != nil {
		return out, api.Invalid("learn_types", "invalid_input", "A valid boolean is required.")
	}
	const most = 200
	if out.Name = query.Get("filename"); len(out.Name) > most {
		return out, api.Invalid("filename", "invalid_input", "The name has more than %d bytes.", most)
	}
	return out, encoding(in, &out)
}

func known(name string) bool {
	return slices.Contains(parameters, name) || name == "token" || name == "personal_api_key"
}

// encoding accepts Content-Encoding as the compression of the file: the file is stored as sent, and its compression is detected from its content.
func encoding(in *api.Input, request *imports.Request) error {
	switch coding := strings.ToLower(in.Header.Get("Content-Encoding")); coding {
	case "", "identity", "gzip", "x-gzip", "zstd":
	case "br":
		request.Name += ".br"
	default:
		return api.UnsupportedEncoding(coding, "identity, gzip, zstd, br")
	}
	if media := in.Header.Get("Content-Type"); strings.HasPrefix(strings.ToLower(media), "multipart/") {
		return api.Invalid("", "invalid_input", "Send the file as the body of the request, not as a form: for example with curl --data-binary @FILE.")
	}
	return nil
}

// mistake returns the API's error for an import that is refused.
func mistake(err error, most int64) error {
	switch {
	case errors.Is(err, imports.ErrNotFound):
		return api.NotFound("Not found.")
	case errors.Is(err, imports.ErrSize):
		return api.BodyTooLarge(most)
	case errors.Is(err, imports.ErrQueue):
		return api.FullQueue("Too many imports of the project are waiting. Send the file again when one of them has finished.")
	case errors.Is(err, imports.ErrRoom):
		return api.FullQueue("The files of waiting imports take up all the space that there is for them. Send the file again when one of them has finished.")
	case errors.Is(err, imports.ErrDisk):
		return api.DiskFull(err)
	case errors.Is(err, errUnknown):
		return errUnknown
	}
	return api.BodyError(err)
}
